#pragma once

#include <fastweights/continuous/components.hpp>
#include <fastweights/continuous/shapes.hpp>
#include <fastweights/core/scratch.hpp>

/// \file
/// A density turns the scores of a query into weights r of the basis functions, r_n = E_p[ψ_n].
/// Then V r is the expectation under p of the signal with coefficients V.

namespace fw::inline FASTWEIGHTS_ABI {

/// A mixture of at most 8 densities of one shape, each with its own mean and variance.
///
///     p(t) = Σ_c weight_c p(t; μ_c, v_c)
///
/// One component of GaussianShape with LearnedComponents is the ∞-former's density.
/// Cost per query and component: O(N) flops and N exponentials.
template <class S, class Components, class Shape = GaussianShape> struct MixtureDensity {
  using Scalar = S;
  using Mixture = fw::Mixture<S>;  ///< the components for a query

  Components components;         ///< the means, variances and weights for a query
  Domain domain = Domain::line;  ///< where the densities live
  static constexpr auto names = fw::names("components", "domain");

  /// The size of the basis, or Dynamic if the components accept any basis.
  Index functions() const {
    if constexpr (requires { components.functions(); })
      return components.functions();
    else
      return Dynamic;
  }

  template <class T> auto cast() const {
    const auto to = components.template cast<T>();
    return MixtureDensity<T, std::remove_const_t<decltype(to)>, Shape>{to, domain};
  }

  /// The components for the scores of one query.
  template <class Basis, class Scores>
  Mixture mixture_of(const Basis& basis, const Scores& scores) const {
    return components.mixture_of(basis, scores);
  }

  /// r ← E_p[ψ]
  template <class Basis, class Scores, class R>
  void expect(const Basis& basis, const Scores&, const Mixture& mixture, R&& r) const {
    r.setZero();
    for (Index c = 0; c < mixture.mean.size(); ++c)
      Shape::add(basis, domain, mixture.weight[c], mixture.mean[c], mixture.variance[c], r);
  }

  /// Given dr and a further gradient `d` of the mixture: overwrites dscores, which must not overlap
  /// dr, overwrites d, and adds to the gradient of the parameters.
  template <class Basis, class Scores, class Dr, class DScores>
  void vjp(const Basis& basis, const Scores& scores, const Mixture& mixture, const Dr& dr,
           Mixture& d, DScores&& dscores, MixtureDensity& grad) const {
    for (Index c = 0; c < mixture.mean.size(); ++c) {
      const auto sums = Shape::sums(basis, domain, mixture.mean[c], mixture.variance[c], dr);
      d.weight[c] += sums.value;
      d.mean[c] += mixture.weight[c] * sums.dmean;
      d.variance[c] += mixture.weight[c] * sums.dvariance;
    }
    components.vjp(basis, scores, mixture, d, dscores, grad.components);
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
            S(mixture.weight[c] / inside) * (below.tail(bins) - below.head(bins)).transpose();
      }
    });
  }

  /// A zero gradient for a mixture.
  Mixture zero_gradient(const Mixture& mixture) const {
    Mixture d(mixture.mean.size());
    d.weight.setZero();
    return d;
  }
};

}  // namespace fw
