#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <ctime>

/// \file
/// What this machine can do at most, measured in the same process as what is compared with it.

namespace machine {

/// The shortest time that f takes of five runs, by a clock in seconds.
template <class Clock, class F> double best_of_five(const Clock& now, const F& f) {
  double best = 1e300;
  for (int run = 0; run < 5; ++run) {
    const double start = now();
    f();
    best = std::min(best, now() - start);
  }
  return best;
}

/// Seconds of processor time that f takes at its best of five runs: whatever else the machine does
/// can only slow a run down. One core; Google Benchmark reports processor time as well.
template <class F> double best_seconds(const F& f) {
  return best_of_five(
      [] { return static_cast<double>(std::clock()) / static_cast<double>(CLOCKS_PER_SEC); }, f);
}

/// As best_seconds, by the clock on the wall: for what runs on several cores.
template <class F> double best_wall_seconds(const F& f) {
  using Clock = std::chrono::steady_clock;
  return best_of_five(
      [] { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }, f);
}

/// How many threads OpenMP starts from now on; none but the first without OpenMP.
void use_threads(int count);

/// Floating-point operations a second of one core that does nothing but fused multiply-adds, where
/// the machine has them; else multiplications and additions.
template <class S> double fma_peak();

/// How many times as many of them in float `threads` threads do.
double fma_peak_scaling(int threads);

/// Bytes a second that one core reads and writes (both counted) when it scales `bytes` bytes in
/// place, again and again.
double in_place_bandwidth(std::size_t bytes);

}  // namespace machine
