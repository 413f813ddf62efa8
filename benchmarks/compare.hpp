#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

/// \file
/// Compares the times of two functions.

namespace machine {

namespace detail {

template <class Clock, class F> double seconds(const Clock& now, F& f, std::size_t times) {
  const double start = now();
  for (std::size_t i = 0; i < times; ++i) f();
  return now() - start;
}

/// The number of runs in which f takes two milliseconds, which the clock resolves. Also warms up
/// f's data.
template <class Clock, class F> std::size_t times_for(const Clock& now, F& f) {
  std::size_t times = 1;
  while (seconds(now, f, times) < 2e-3) times *= 2;
  return times;
}

}  // namespace detail

/// The time of other() divided by the time of one(): the median of seven rounds. The two alternate,
/// so that a change of the machine's speed affects both. The median ignores a disturbed round.
template <class Clock, class F, class G> double time_ratio(const Clock& now, F&& one, G&& other) {
  const std::size_t one_times = detail::times_for(now, one);
  const std::size_t other_times = detail::times_for(now, other);
  std::array<double, 7> ratios;
  for (double& ratio : ratios) {
    const double first = detail::seconds(now, one, one_times) / static_cast<double>(one_times);
    ratio = detail::seconds(now, other, other_times) / static_cast<double>(other_times) / first;
  }
  std::nth_element(ratios.begin(), ratios.begin() + 3, ratios.end());
  return ratios[3];
}

}  // namespace machine
