#pragma once

#include <cmath>
#include <fastweights/continuous/locations.hpp>

namespace fw {

/// Pulls every density towards N(μ₀, σ₀²), so that it does not spread over the whole signal:
///
///     KL = ½ (v/σ₀² − ln(v/σ₀²) − 1)   [ + ½ (μ − μ₀)²/σ₀² if `mean` ]
///
/// weight · (its mean over heads, components and queries) is added to the loss. A density without a
/// place, such as a Gibbs density, is left alone.
/// Martins et al. 2022, arXiv 2109.00301, eq. 13–14.
struct KlRegulariser {
  double weight = 0;
  double sigma0 = 0.05;
  bool mean = false;
  double mu0 = 0.5;

  /// The mean over the components.
  template <class Place> double divergence([[maybe_unused]] const Place& place) const {
    double sum = 0;
    if constexpr (requires { place.variance; }) {
      const double s = sigma0 * sigma0;
      for (Index c = 0; c < place.mean.size(); ++c) {
        const double ratio = static_cast<double>(detail::real_part(place.variance[c])) / s;
        const double away = static_cast<double>(detail::real_part(place.mean[c])) - mu0;
        sum += 0.5 * (ratio - std::log(ratio) - 1) + (mean ? 0.5 * away * away / s : 0);
      }
      sum /= static_cast<double>(place.mean.size());
    }
    return sum;
  }

  /// Adds weight · share times its gradient.
  template <class Place>
  void pull([[maybe_unused]] const Place& place, [[maybe_unused]] double share,
            [[maybe_unused]] Place& d) const {
    if constexpr (requires { place.variance; }) {
      using S = typename std::remove_cvref_t<decltype(place.variance)>::Scalar;
      const auto s = S(sigma0 * sigma0);
      const auto each = S(weight * share / static_cast<double>(place.mean.size()));
      d.variance += each * S(0.5) * (S(1) / s - place.variance.inverse());
      if (mean) d.mean += each * (place.mean - S(mu0)) / s;
    }
  }
};

}  // namespace fw
