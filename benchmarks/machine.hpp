#pragma once

#include <algorithm>
#include <cstddef>
#include <ctime>

/// \file
/// What this machine can do at most, measured in the same process as what is compared with it.

namespace machine {

/// Seconds of processor time that f takes at its best of five runs: whatever else the machine does
/// can only slow a run down. One core; Google Benchmark reports processor time as well.
template <class F> double best_seconds(const F& f) {
  double best = 1e300;
  for (int run = 0; run < 5; ++run) {
    const std::clock_t start = std::clock();
    f();
    best = std::min(best, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  return best;
}

/// Floating-point operations a second of one core that does nothing but fused multiply-adds, where
/// the machine has them; else multiplications and additions.
template <class S> double fma_peak();

/// Bytes a second that one core reads and writes (both counted) when it scales `bytes` bytes in
/// place, again and again.
double in_place_bandwidth(std::size_t bytes);

}  // namespace machine
