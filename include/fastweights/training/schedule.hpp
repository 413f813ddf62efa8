#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>

/// \file
/// Learning rates by step, counted from 0. Both rise linearly over the first `warmup` steps, reach
/// `peak` with the last of them, fall until `total` and stay at `floor` from there on.
///
///     const fw::WarmupCosine rate{.peak = 2e-3, .warmup = 50, .total = 1200, .floor = 2e-5};
///     optimiser.step(model, grad, rate(step));

namespace fw {

namespace detail {

/// How far a step is between warm-up and end, in [0, 1].
inline double progress(long long step, long long warmup, long long total) {
  if (total <= warmup) return step < warmup ? 0 : 1;
  return std::clamp(static_cast<double>(step - warmup) / static_cast<double>(total - warmup), 0.0,
                    1.0);
}

/// (step + 1)/warmup while that is below 1.
inline double warmth(long long step, long long warmup) {
  return step < warmup ? static_cast<double>(step + 1) / static_cast<double>(warmup) : 1.0;
}

}  // namespace detail

/// Half a cosine from peak to floor. Loshchilov, Hutter 2016, arXiv 1608.03983, eq. 5, without
/// restarts.
struct WarmupCosine {
  double peak = 1e-3;
  long long warmup = 0;
  long long total = 1;
  double floor = 0;

  double operator()(long long step) const {
    if (step < warmup) return peak * detail::warmth(step, warmup);
    const double angle = std::numbers::pi * detail::progress(step, warmup, total);
    return floor + (peak - floor) * 0.5 * (1 + std::cos(angle));
  }
};

/// A straight line from peak to floor.
struct WarmupLinear {
  double peak = 1e-3;
  long long warmup = 0;
  long long total = 1;
  double floor = 0;

  double operator()(long long step) const {
    if (step < warmup) return peak * detail::warmth(step, warmup);
    return peak + (floor - peak) * detail::progress(step, warmup, total);
  }
};

}  // namespace fw
