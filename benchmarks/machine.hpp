#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <ctime>
#include <iterator>
#include <vector>

/// \file
/// The machine's peak rates, measured in the same process as the benchmarks.

namespace machine {

/// Seconds of processor time, as Google Benchmark reports them: other processes do not count.
inline double processor_clock() {
  return static_cast<double>(std::clock()) / static_cast<double>(CLOCKS_PER_SEC);
}

/// Seconds of wall-clock time, for work on several cores.
inline double wall_clock() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

/// The shortest processor time of f in five runs, in seconds: a disturbance only slows a run down.
template <class F> double best_seconds(const F& f) {
  double best = 1e300;
  for (int run = 0; run < 5; ++run) {
    const double start = processor_clock();
    f();
    best = std::min(best, processor_clock() - start);
  }
  return best;
}

inline double median(std::vector<double> numbers) {
  const auto middle = numbers.begin() + std::ssize(numbers) / 2;
  std::nth_element(numbers.begin(), middle, numbers.end());
  return *middle;
}

/// Sets the number of OpenMP threads. Without OpenMP there is one.
void use_threads(int count);

/// Cores that threads can use; 1 without OpenMP.
int cores();

/// Floating-point operations per second of one core that does nothing but fused multiply-adds (or
/// multiplications and additions, if there are none). Every call measures anew for some
/// milliseconds, because the clock rate changes with heat and load.
template <class S> double fma_peak();

/// The rate of `threads` threads in float, divided by the rate of one thread.
double fma_peak_scaling(int threads);

/// Bytes per second that one core reads and writes (both counted) while it repeatedly scales an
/// array of `bytes` bytes in place.
double in_place_bandwidth(std::size_t bytes);

}  // namespace machine
