#pragma once

#include <fastweights/continuous/locations.hpp>
#include <fastweights/continuous/shapes.hpp>
#include <fastweights/core/scratch.hpp>

/// \file
/// A density turns the scores of a query into weights r of the basis functions, r_n = E_p[ψ_n], so
/// that V r is what a signal with coefficients V is expected to be under p.

namespace fw {

/// A mixture of densities of one shape, at most 8, each with its own mean and variance.
///
///     p(t) = Σ_c share_c p(t; μ_c, v_c)
///
/// One component of GaussianShape with learned location is the ∞-former's density.
/// Cost a query: O(N) per component, one exponential each.
template <class S, class Location, class Shape = GaussianShape> struct LocatedDensity {
  using Scalar = S;
  using Place = Located<S>;

  Location location;
  Domain domain = Domain::line;
  static constexpr auto names = fw::names("location", "domain");

  /// Of the basis that the scores belong to; Dynamic where the location takes any.
  Index functions() const {
    if constexpr (requires { location.functions(); })
      return location.functions();
    else
      return Dynamic;
  }

  template <class T> auto cast() const {
    const auto place = location.template cast<T>();
    return LocatedDensity<T, std::remove_const_t<decltype(place)>, Shape>{place, domain};
  }

  template <class Basis, class Scores>
  Place locate(const Basis& basis, const Scores& scores) const {
    return location.locate(basis, scores);
  }

  /// r ← E_p[ψ]
  template <class Basis, class Scores, class R>
  void expect(const Basis& basis, const Scores&, const Place& at, R&& r) const {
    r.setZero();
    for (Index c = 0; c < at.mean.size(); ++c)
      Shape::add(basis, domain, at.share[c], at.mean[c], at.variance[c], r);
  }

  /// From dr, and from `d`, the gradient that something else has for the place, to that of the
  /// scores (overwritten; it may not be dr) and of the parameters (accumulated). `d` is used up.
  template <class Basis, class Scores, class Dr, class DScores>
  void vjp(const Basis& basis, const Scores& scores, const Place& at, const Dr& dr, Place& d,
           DScores&& dscores, LocatedDensity& grad) const {
    for (Index c = 0; c < at.mean.size(); ++c) {
      const auto sums = Shape::sums(basis, domain, at.mean[c], at.variance[c], dr);
      d.share[c] += sums.value;
      d.mean[c] += at.share[c] * sums.dmean;
      d.variance[c] += at.share[c] * sums.dvariance;
    }
    location.vjp(basis, scores, at, d, dscores, grad.location);
  }

  /// Adds p's mass in each of the equal bins of [0, 1].
  template <class Basis, class Scores, class Histogram>
  void add_mass(const Basis&, const Scores&, const Place& at, Histogram& histogram) const {
    const Index bins = histogram.size();
    scratch<S, Dynamic, 2>(bins + 1, [&](auto& below, auto& buffer) {
      for (Index c = 0; c < at.mean.size(); ++c) {
        for (Index b = 0; b <= bins; ++b)
          below[b] = S(static_cast<double>(b) / static_cast<double>(bins));
        // A hair beyond both ends: a density that stands on one of them leaves all its mass.
        below[0] = S(-1e-6);
        below[bins] = S(1.000001);
        Shape::cdf(at.mean[c], at.variance[c], below, buffer);
        const S inside = domain == Domain::unit ? S(below[bins] - below[0]) : S(1);
        histogram += S(at.share[c] / inside) * (below.tail(bins) - below.head(bins)).transpose();
      }
    });
  }

  /// A place with no gradient.
  Place no_gradient(const Place& at) const {
    Place d(at.mean.size());
    d.share.setZero();
    return d;
  }
};

}  // namespace fw
