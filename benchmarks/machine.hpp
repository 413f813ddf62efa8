#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <ctime>

/// \file
/// What this machine can do at most, measured in the same process as what is compared with it.

namespace machine {

/// Seconds of processor time: of one core, whatever else the machine does. Google Benchmark reports
/// processor time as well.
inline double processor_clock() {
  return static_cast<double>(std::clock()) / static_cast<double>(CLOCKS_PER_SEC);
}

/// Seconds on the wall: for what runs on several cores.
inline double wall_clock() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

/// Seconds of processor time that f takes at its best of five runs: whatever else the machine does
/// can only slow a run down.
template <class F> double best_seconds(const F& f) {
  double best = 1e300;
  for (int run = 0; run < 5; ++run) {
    const double start = processor_clock();
    f();
    best = std::min(best, processor_clock() - start);
  }
  return best;
}

/// How many threads OpenMP starts from now on; none but the first without OpenMP.
void use_threads(int count);

/// How many cores there are for threads; 1 without OpenMP.
int cores();

/// Floating-point operations a second of one core that does nothing but fused multiply-adds, where
/// the machine has them; else multiplications and additions. Measured anew by every call, some
/// milliseconds, as a machine's speed changes with its heat and its other guests.
template <class S> double fma_peak();

/// How many times as many of them in float `threads` threads do.
double fma_peak_scaling(int threads);

/// Bytes a second that one core reads and writes (both counted) when it scales `bytes` bytes in
/// place, again and again.
double in_place_bandwidth(std::size_t bytes);

}  // namespace machine
