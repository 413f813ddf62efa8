#pragma once

#include <chrono>
#include <fastweights/algorithms/scan.hpp>
#include <fastweights/testing/sequences.hpp>

namespace fw::testing {

/// Nanoseconds a token of fw::scan over `steps` random tokens, the best of five runs: a first look
/// at a new rule, not a benchmark (benchmarks/ has those).
template <Memory M> double nanoseconds_per_token(const M& m, Index steps = 4096) {
  using Clock = std::chrono::steady_clock;
  Random random(1);
  auto all = random_sequences(m, steps, random, /*positive=*/true);
  double best = std::numeric_limits<double>::infinity();
  for (int run = 0; run < 5; ++run) {
    StateOf<M> state = initial_state(m);
    const auto start = Clock::now();
    scan(m, state, view<WriteSequence<M>>(all.inputs), view<ReadSequence<M>>(all.queries),
         view<OutSequence<M>>(all.outputs));
    const std::chrono::duration<double, std::nano> taken = Clock::now() - start;
    best = std::min(best, taken.count() / static_cast<double>(steps));
  }
  return best;
}

}  // namespace fw::testing
