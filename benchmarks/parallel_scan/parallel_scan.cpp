#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fastweights/any_memory/table.hpp>
#include <fastweights/testing/any_sequences.hpp>
#include <vector>

// The speed of parallel_scan relative to scan in one thread, for one head of 65,536 tokens. The
// two run in turns; the ratios are of their median and of their shortest times. The arguments are
// the number of pieces (2), the least decay (0.9) and the number of turns (15). OMP_NUM_THREADS
// sets the number of threads; as many as pieces is best.
namespace {

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

void compare(const char* name, const char* memory, Index d, const Options& options) {
  const auto m = fw::make_memory<float>(memory, {.key_size = d});
  fw::Random random(1);
  auto all = fw::testing::random_sequences(m, 65536, random);
  for (std::size_t i = 0; i < all.inputs.matrices.size(); ++i)
    if (all.inputs.members()[i].role == fw::Role::decay) {  // drawn from 0.5 to 1
      auto decay = all.inputs.matrices[i].array();
      decay = 1 - (1 - options.least_decay) * 2 * (1 - decay);
    }
  const auto inputs = all.inputs.views(), queries = all.queries.views();
  const auto outputs = all.outputs.views<float>();
  auto state = m.initial_state();
  std::vector<double> one, parallel;
  for (int turn = 0; turn < options.turns; ++turn) {
    one.push_back(milliseconds([&] { m.scan(state, inputs, queries, outputs); }));
    parallel.push_back(
        milliseconds([&] { m.parallel_scan(state, inputs, queries, outputs, options.pieces); }));
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
    compare("delta rule", "DeltaRule", d, options);
    compare("gated delta rule", "GatedDeltaRule", d, options);
    compare("Kimi delta attention", "KimiDeltaAttention", d, options);
  }
}
