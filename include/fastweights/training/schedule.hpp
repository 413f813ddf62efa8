#pragma once

#include <algorithm>
#include <cmath>
#include <fastweights/core/abi.hpp>
#include <numbers>

/// \file
/// Learning rates by step, counted from 0. Both schedules rise linearly over the first `warmup`
/// steps and reach `peak` in the last of these. Then they fall until step `total` and stay at
/// `floor`.
///
///     const fw::WarmupCosine rate{.peak = 2e-3, .warmup = 50, .total = 1200, .floor = 2e-5};
///     optimiser.step(model, grad, rate(step));

namespace fw::inline FASTWEIGHTS_ABI {

namespace detail {

/// The fraction of the steps between warm-up and end that are done, in [0, 1].
inline double progress(long long step, long long warmup, long long total) {
  if (total <= warmup) return step < warmup ? 0 : 1;
  return std::clamp(static_cast<double>(step - warmup) / static_cast<double>(total - warmup), 0.0,
                    1.0);
}

/// (step + 1)/warmup during the warm-up, then 1.
inline double warmup_factor(long long step, long long warmup) {
  return step < warmup ? static_cast<double>(step + 1) / static_cast<double>(warmup) : 1.0;
}

}  // namespace detail

/// Half a cosine from peak to floor. Loshchilov, Hutter 2016, arXiv 1608.03983, eq. 5, without
/// restarts.
struct WarmupCosine {
  double peak = 1e-3;    ///< the largest rate
  long long warmup = 0;  ///< steps that rise to the peak
  long long total = 1;   ///< steps to the end
  double floor = 0;      ///< the rate from step `total` on

  /// The rate of a step, counted from 0.
  double operator()(long long step) const {
    if (step < warmup) return peak * detail::warmup_factor(step, warmup);
    const double angle = std::numbers::pi * detail::progress(step, warmup, total);
    return floor + (peak - floor) * 0.5 * (1 + std::cos(angle));
  }
};

/// A straight line from peak to floor.
struct WarmupLinear {
  double peak = 1e-3;    ///< the largest rate
  long long warmup = 0;  ///< steps that rise to the peak
  long long total = 1;   ///< steps to the end
  double floor = 0;      ///< the rate from step `total` on

  /// The rate of a step, counted from 0.
  double operator()(long long step) const {
    if (step < warmup) return peak * detail::warmup_factor(step, warmup);
    return peak + (floor - peak) * detail::progress(step, warmup, total);
  }
};

}  // namespace fw
