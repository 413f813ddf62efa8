// The time of a scan, for WebAssembly and natively: nanoseconds a token.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fastweights/algorithms/step.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/testing/sequences.hpp>

extern "C" double nanoseconds(int d) {
  using Memory = fw::GatedDeltaRule<float>;
  constexpr fw::Index steps = 512;
  const Memory memory({.key_size = d});
  fw::Random random(1);
  auto all = fw::testing::random_sequences(memory, steps, random);
  auto state = fw::initial_state(memory);
  Eigen::MatrixXf outputs(d, steps);
  double best = 1e300;
  for (int round = 0; round < 20; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    fw::scan(memory, state, fw::view<fw::WriteSequence<Memory>>(all.inputs),
             fw::view<fw::ReadSequence<Memory>>(all.queries), {outputs});
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - begin;
    best = std::min(best, time.count() / double(steps));
  }
  return best;
}

int main() { std::printf("%.0f %.0f\n", nanoseconds(64), nanoseconds(128)); }
