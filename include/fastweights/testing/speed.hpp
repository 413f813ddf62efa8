#pragma once

#include <chrono>
#include <fastweights/algorithms/scan.hpp>
#include <fastweights/testing/sequences.hpp>

namespace fw::inline FASTWEIGHTS_ABI::testing {

/// The time of fw::scan per token, in nanoseconds: the fastest of five runs over `steps` random
/// tokens. For a first look at a new rule; benchmarks/ has the benchmarks.
template <Memory M> double nanoseconds_per_token(const M& m, Index steps = 4096) {
  using Clock = std::chrono::steady_clock;
  Random random(1);
  auto sequences = random_sequences(m, steps, random, /*positive=*/true);
  double best = std::numeric_limits<double>::infinity();
  for (int run = 0; run < 5; ++run) {
    StateOf<M> state = initial_state(m);
    const auto start = Clock::now();
    scan(m, state, view<WriteSequence<M>>(sequences.inputs),
         view<ReadSequence<M>>(sequences.queries), view<OutSequence<M>>(sequences.outputs));
    const std::chrono::duration<double, std::nano> elapsed = Clock::now() - start;
    best = std::min(best, elapsed.count() / static_cast<double>(steps));
  }
  return best;
}

}  // namespace fw::testing
