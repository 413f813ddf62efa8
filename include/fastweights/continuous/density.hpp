#pragma once

#include <fastweights/continuous/locations.hpp>
#include <fastweights/continuous/shapes.hpp>
#include <fastweights/core/scratch.hpp>

/// \file
/// A density turns the scores of a query into weights r of the basis functions, r_n = E_p[ψ_n].
/// Then V r is the expectation under p of the signal with coefficients V.

namespace fw {

/// A mixture of at most 8 densities of one shape, each with its own mean and variance.
///
///     p(t) = Σ_c share_c p(t; μ_c, v_c)
///
/// One component of GaussianShape with learned location is the ∞-former's density.
/// Cost per query and component: O(N) flops and N exponentials.
template <class S, class Location, class Shape = GaussianShape> struct LocatedDensity {
  using Scalar = S;
  using Mixture = fw::Mixture<S>;

  Location location;
  Domain domain = Domain::line;
  static constexpr auto names = fw::names("location", "domain");

  /// The size of the basis, or Dynamic if the location accepts any basis.
  Index functions() const {
    if constexpr (requires { location.functions(); })
      return location.functions();
    else
      return Dynamic;
  }

  template <class T> auto cast() const {
    const auto to = location.template cast<T>();
    return LocatedDensity<T, std::remove_const_t<decltype(to)>, Shape>{to, domain};
  }

  template <class Basis, class Scores>
  Mixture locate(const Basis& basis, const Scores& scores) const {
    return location.locate(basis, scores);
  }

  /// r ← E_p[ψ]
  template <class Basis, class Scores, class R>
  void expect(const Basis& basis, const Scores&, const Mixture& mixture, R&& r) const {
    r.setZero();
    for (Index c = 0; c < mixture.mean.size(); ++c)
      Shape::add(basis, domain, mixture.share[c], mixture.mean[c], mixture.variance[c], r);
  }

  /// Given dr and a further gradient `d` of the mixture: overwrites dscores, which must not overlap
  /// dr, overwrites d, and adds to the gradient of the parameters.
  template <class Basis, class Scores, class Dr, class DScores>
  void vjp(const Basis& basis, const Scores& scores, const Mixture& mixture, const Dr& dr,
           Mixture& d, DScores&& dscores, LocatedDensity& grad) const {
    for (Index c = 0; c < mixture.mean.size(); ++c) {
      const auto sums = Shape::sums(basis, domain, mixture.mean[c], mixture.variance[c], dr);
      d.share[c] += sums.value;
      d.mean[c] += mixture.share[c] * sums.dmean;
      d.variance[c] += mixture.share[c] * sums.dvariance;
    }
    location.vjp(basis, scores, mixture, d, dscores, grad.location);
  }

  /// Adds the mass of p in each of the equal bins of [0, 1].
  template <class Basis, class Scores, class Histogram>
  void add_mass(const Basis&, const Scores&, const Mixture& mixture, Histogram& histogram) const {
    const Index bins = histogram.size();
    scratch<S, Dynamic, 2>(bins + 1, [&](auto& below, auto& buffer) {
      for (Index c = 0; c < mixture.mean.size(); ++c) {
        for (Index b = 0; b <= bins; ++b)
          below[b] = S(static_cast<double>(b) / static_cast<double>(bins));
        // Slightly beyond both ends, so that a narrow density at an end counts with all its mass.
        below[0] = S(-1e-6);
        below[bins] = S(1.000001);
        Shape::cdf(mixture.mean[c], mixture.variance[c], below, buffer);
        const S inside = domain == Domain::unit ? S(below[bins] - below[0]) : S(1);
        histogram +=
            S(mixture.share[c] / inside) * (below.tail(bins) - below.head(bins)).transpose();
      }
    });
  }

  /// A zero gradient for a mixture.
  Mixture zero_gradient(const Mixture& mixture) const {
    Mixture d(mixture.mean.size());
    d.share.setZero();
    return d;
  }
};

}  // namespace fw
