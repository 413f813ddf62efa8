#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

/// \file
/// Two ways to do the same, against each other.

namespace machine {

namespace detail {

template <class Clock, class F> double seconds(const Clock& now, F& f, std::size_t times) {
  const double start = now();
  for (std::size_t i = 0; i < times; ++i) f();
  return now() - start;
}

/// How often f has to run to take two milliseconds: enough for the clock. Also warms its data up.
template <class Clock, class F> std::size_t times_for(const Clock& now, F& f) {
  std::size_t times = 1;
  while (seconds(now, f, times) < 2e-3) times *= 2;
  return times;
}

}  // namespace detail

/// How many times as long as `one` takes `other`, each run once: the median of seven rounds in
/// which the two take turns. A machine that changes its speed changes it for both, and what
/// disturbs one round of them is left out.
template <class Clock, class F, class G>
double times_as_long(const Clock& now, F&& one, G&& other) {
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
