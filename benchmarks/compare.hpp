#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

/// \file
/// The time of one function over that of another.

namespace machine {

namespace detail {

template <class Clock, class F> double seconds(const Clock& now, F& f, std::size_t times) {
  const double start = now();
  for (std::size_t i = 0; i < times; ++i) f();
  return now() - start;
}

/// How often f has to run to take two milliseconds, enough for the clock. Warms up f's data too.
template <class Clock, class F> std::size_t times_for(const Clock& now, F& f) {
  std::size_t times = 1;
  while (seconds(now, f, times) < 2e-3) times *= 2;
  return times;
}

}  // namespace detail

/// The time of other() divided by the time of one(): the median of seven rounds in which the two
/// take turns. A change of the machine's speed affects both, and the median ignores a disturbed
/// round.
template <class Clock, class F, class G> double time_ratio(const Clock& now, F&& one, G&& other) {
  const std::size_t ones = detail::times_for(now, one), others = detail::times_for(now, other);
  std::array<double, 7> ratios;
  for (double& ratio : ratios) {
    const double first = detail::seconds(now, one, ones) / static_cast<double>(ones);
    ratio = detail::seconds(now, other, others) / static_cast<double>(others) / first;
  }
  std::nth_element(ratios.begin(), ratios.begin() + 3, ratios.end());
  return ratios[3];
}

}  // namespace machine
