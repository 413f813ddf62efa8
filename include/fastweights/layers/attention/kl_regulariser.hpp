#pragma once

#include <cmath>
#include <fastweights/continuous/locations.hpp>

namespace fw {

/// A penalty on the KL divergence of every density from N(μ₀, σ₀²). It keeps densities from
/// spreading over the whole signal:
///
///     KL = ½ (v/σ₀² − ln(v/σ₀²) − 1)   [ + ½ (μ − μ₀)²/σ₀² if `mean` ]
///
/// The loss contains weight · (the mean of KL over heads, components and queries). A density
/// without mean and variance, such as a Gibbs density, has no penalty. Martins et al. 2022, arXiv
/// 2109.00301, eq. 13–14.
struct KlRegulariser {
  double weight = 0;
  double sigma0 = 0.05;
  bool mean = false;
  double mu0 = 0.5;

  /// The mean of KL over the components of one density.
  template <class Location> double divergence([[maybe_unused]] const Location& location) const {
    double sum = 0;
    if constexpr (requires { location.variance; }) {
      const double s = sigma0 * sigma0;
      for (Index c = 0; c < location.mean.size(); ++c) {
        const double ratio = static_cast<double>(detail::real_part(location.variance[c])) / s;
        const double offset = static_cast<double>(detail::real_part(location.mean[c])) - mu0;
        sum += 0.5 * (ratio - std::log(ratio) - 1) + (mean ? 0.5 * offset * offset / s : 0);
      }
      sum /= static_cast<double>(location.mean.size());
    }
    return sum;
  }

  /// Adds weight · scale · (the gradient of the divergence) to dlocation.
  template <class Location>
  void add_gradient([[maybe_unused]] const Location& location, [[maybe_unused]] double scale,
                    [[maybe_unused]] Location& dlocation) const {
    if constexpr (requires { location.variance; }) {
      using S = typename std::remove_cvref_t<decltype(location.variance)>::Scalar;
      const auto s = S(sigma0 * sigma0);
      const auto each = S(weight * scale / static_cast<double>(location.mean.size()));
      dlocation.variance += each * S(0.5) * (S(1) / s - location.variance.inverse());
      if (mean) dlocation.mean += each * (location.mean - S(mu0)) / s;
    }
  }
};

}  // namespace fw
