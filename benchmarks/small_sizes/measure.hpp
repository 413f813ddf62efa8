#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <fastweights/algorithms/scan.hpp>
#include <limits>
#include <utility>
#include <vector>

#include "small_sizes/rules.hpp"

namespace small_sizes {

/// Nanoseconds per token.
struct Times {
  Index d;
  double hand, step, scan;
};
using AllTimes = std::vector<Times>;

/// The shortest of many times of each function, called in turns: other programs and changes of the
/// clock then disturb all alike.
template <class... F> std::array<double, sizeof...(F)> shortest(Index tokens, F... functions) {
  using Clock = std::chrono::steady_clock;
  std::array<double, sizeof...(F)> best;
  best.fill(std::numeric_limits<double>::infinity());
  const auto begin = Clock::now();
  for (int turn = 0; turn < 30 || Clock::now() - begin < std::chrono::milliseconds(40); ++turn) {
    std::size_t i = 0;
    const auto measure = [&](auto& f) {
      const auto start = Clock::now();
      f();
      const std::chrono::duration<double, std::nano> time = Clock::now() - start;
      best[i] = std::min(best[i], time.count() / static_cast<double>(tokens));
      ++i;
    };
    (measure(functions), ...);
  }
  return best;
}

// Not inline, so that the compiler's decisions for one loop do not depend on the others.
template <class Rule, class Sequence> EIGEN_DONT_INLINE void hand_loop(Sequence& s) {
  for (Index t = 0; t < s.tokens; ++t) Rule::token(s, t);
}
template <class Rule, class M, class Sequence>
EIGEN_DONT_INLINE void step_loop(const M& memory, fw::StateOf<M>& state, Sequence& s) {
  for (Index t = 0; t < s.tokens; ++t)
    fw::step(memory, state, Rule::input(s, t), {s.queries.col(t)}, {s.outputs.col(t)});
}
template <class Rule, class M, class Sequence>
EIGEN_DONT_INLINE void scan_once(const M& memory, fw::StateOf<M>& state, Sequence& s) {
  fw::scan(memory, state, Rule::inputs(s), {s.queries}, {s.outputs});
}

template <class Rule> Times measure(Index d) {
  const typename Rule::Memory memory({.key_size = d, .value_size = d});
  auto stepped = fw::initial_state(memory), scanned = stepped;
  typename Rule::Sequence s(d);
  const auto [hand, step, scan] = shortest(
      s.tokens, [&] { hand_loop<Rule>(s); }, [&] { step_loop<Rule>(memory, stepped, s); },
      [&] { scan_once<Rule>(memory, scanned, s); });
  return {d, hand, step, scan};
}

/// Every size from 1 to 64, with matrices of dynamic size.
template <template <class, int> class Rule, class S> AllTimes dynamic_sizes() {
  AllTimes all;
  for (Index d = 1; d <= 64; ++d) all.push_back(measure<Rule<S, Dynamic>>(d));
  return all;
}

/// Some sizes, with matrices of fixed size.
template <template <class, int> class Rule, class S> AllTimes fixed_sizes() {
  return []<int... D>(std::integer_sequence<int, D...>) {
    return AllTimes{measure<Rule<S, D>>(D)...};
  }
  (std::integer_sequence<int, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64>{});
}

}  // namespace small_sizes
