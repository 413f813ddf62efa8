#pragma once

#include <cmath>
#include <fastweights/continuous/components.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// A penalty on the KL divergence of every density from N(μ₀, σ₀²). It keeps densities from
/// spreading over the whole signal:
///
///     KL = ½ (v/σ₀² − ln(v/σ₀²) − 1)   [ + ½ (μ − μ₀)²/σ₀² if `mean` ]
///
/// The loss contains weight · (the mean of KL over heads, components and queries). A density
/// without mean and variance, such as a Gibbs density, has no penalty. Martins et al. 2022, arXiv
/// 2109.00301, eq. 13–14.
struct KlRegulariser {
  double weight = 0;     ///< of the KL in the loss
  double sigma0 = 0.05;  ///< σ₀, the standard deviation that the density is drawn to
  bool mean = false;     ///< whether its mean is drawn to μ₀ too
  double mu0 = 0.5;      ///< μ₀

  /// The mean of KL over the components of one density.
  template <class Mixture> double divergence([[maybe_unused]] const Mixture& mixture) const {
    double sum = 0;
    if constexpr (requires { mixture.variance; }) {
      const double s = sigma0 * sigma0;
      for (Index c = 0; c < mixture.mean.size(); ++c) {
        const double ratio = static_cast<double>(detail::real_part(mixture.variance[c])) / s;
        const double offset = static_cast<double>(detail::real_part(mixture.mean[c])) - mu0;
        sum += 0.5 * (ratio - std::log(ratio) - 1) + (mean ? 0.5 * offset * offset / s : 0);
      }
      sum /= static_cast<double>(mixture.mean.size());
    }
    return sum;
  }

  /// Adds weight · scale · (the gradient of the divergence) to dmixture.
  template <class Mixture>
  void add_gradient([[maybe_unused]] const Mixture& mixture, [[maybe_unused]] double scale,
                    [[maybe_unused]] Mixture& dmixture) const {
    if constexpr (requires { mixture.variance; }) {
      using S = typename std::remove_cvref_t<decltype(mixture.variance)>::Scalar;
      const auto s = S(sigma0 * sigma0);
      const auto each = S(weight * scale / static_cast<double>(mixture.mean.size()));
      dmixture.variance += each * S(0.5) * (S(1) / s - mixture.variance.inverse());
      if (mean) dmixture.mean += each * (mixture.mean - S(mu0)) / s;
    }
  }
};

}  // namespace fw
