#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fastweights/algorithms/parallel_scan.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/testing/sequences.hpp>
#include <vector>

// How many times as fast parallel_scan is as scan in one thread, for one head of 65,536 tokens. The
// two run in turns; the ratios are of their median and of their shortest times. The arguments are
// the number of pieces (2), the least decay (0.9) and the number of turns (15). OMP_NUM_THREADS
// sets the number of threads; as many as pieces is best.
namespace {

using fw::Dynamic;
using fw::Index;

struct Options {
  Index pieces;
  float least_decay;
  int turns;
};

template <class F> double milliseconds(const F& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

template <class M> void compare(const char* name, Index d, const Options& options) {
  const M m({.key_size = d});
  fw::Random random(1);
  auto all = fw::testing::random_sequences(m, 65536, random);
  if constexpr (requires { all.inputs.decay; })  // drawn from 0.5 to 1
    all.inputs.decay.array() = 1 - (1 - options.least_decay) * 2 * (1 - all.inputs.decay.array());
  const auto inputs = fw::view<fw::WriteSequence<M>>(all.inputs);
  const auto queries = fw::view<fw::ReadSequence<M>>(all.queries);
  const fw::OutSequence<M> outputs{all.outputs.output};
  auto state = fw::initial_state(m);
  std::vector<double> one, parallel;
  for (int turn = 0; turn < options.turns; ++turn) {
    one.push_back(milliseconds([&] { fw::scan(m, state, inputs, queries, outputs); }));
    parallel.push_back(milliseconds(
        [&] { fw::parallel_scan(m, state, inputs, queries, outputs, options.pieces); }));
  }
  std::sort(one.begin(), one.end());
  std::sort(parallel.begin(), parallel.end());
  const std::size_t middle = one.size() / 2;
  std::printf("%-22s d = %3d: scan %6.1f ms, %.2f times as fast; shortest %6.1f ms, %.2f\n", name,
              static_cast<int>(d), one[middle], one[middle] / parallel[middle], one[0],
              one[0] / parallel[0]);
}

}  // namespace

int main(int argc, char** argv) {
  const Options options{argc > 1 ? std::max(std::atoi(argv[1]), 1) : 2,
                        argc > 2 ? static_cast<float>(std::atof(argv[2])) : 0.9f,
                        argc > 3 ? std::max(std::atoi(argv[3]), 1) : 15};
  for (const Index d : {64, 128}) {
    compare<fw::DeltaRule<float>>("delta rule", d, options);
    compare<fw::GatedDeltaRule<float>>("gated delta rule", d, options);
    compare<fw::GatedDeltaRule<float, Dynamic, Dynamic, fw::KeyValueBetaVectorDecay>>(
        "Kimi delta attention", d, options);
  }
}
