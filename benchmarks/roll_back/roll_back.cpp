// What taking back draft tokens costs: the writes of a Deferred memory with R > 0 beside a snapshot
// of the state before every draft. Each round writes R drafts to the gated delta rule's states of
// 32 heads and takes half of them back.
//
//     build/release/benchmarks/roll_back

#include <cstdio>
#include <fastweights/core/state.hpp>
#include <fastweights/memories/adaptors/deferred.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <vector>

#include "compare.hpp"
#include "machine.hpp"

namespace {

using Eigen::Index;
using Rule = fw::GatedDeltaRule<float>;
constexpr Index heads = 32;

template <class State> Index bytes_of(State& state) {
  Index bytes = 0;
  fw::detail::visit_all_leaves(
      [&](const fw::detail::Leaf* leaf, const fw::detail::LeafPath&) {
        bytes += leaf->size() * Index(leaf->width);
      },
      state);
  return bytes;
}

// The states of the heads of a stream, and tokens for them.
template <class M> struct Stream {
  M m;
  std::vector<fw::StateOf<M>> states;
  Eigen::MatrixXf keys, values, outputs;

  explicit Stream(Index d)
      : m(Rule({.key_size = d})),
        states(heads, fw::initial_state(m)),
        keys(Eigen::MatrixXf::Random(d, heads)),
        values(Eigen::MatrixXf::Random(d, heads)),
        outputs(d, heads) {
    keys.colwise().normalize();
  }
  void step() {
    float beta = 0.5f, decay = 0.99f;
    for (Index h = 0; h < heads; ++h)
      m.step(states[std::size_t(h)], {keys.col(h), values.col(h), beta, decay}, {keys.col(h)},
             {outputs.col(h)});
  }
};

template <int R> void print(Index d) {
  Stream<fw::Deferred<Rule, 8>> plain(d), copied(d);
  Stream<fw::Deferred<Rule, 8, float, R>> kept(d);
  std::vector<std::vector<fw::StateOf<fw::Deferred<Rule, 8>>>> snapshots(R, copied.states);
  const auto steps = [&] {
    for (int t = 0; t < R; ++t) plain.step();
  };
  const auto copies = [&] {
    for (int t = 0; t < R; ++t) {
      snapshots[std::size_t(t)] = copied.states;  // reuses the storage
      copied.step();
    }
    copied.states = snapshots[R / 2];
  };
  const auto roll_back = [&] {
    for (int t = 0; t < R; ++t) kept.step();
    for (auto& state : kept.states) fw::roll_back(state, R / 2);
  };
  const auto over_steps = [&](const auto& f) {
    return machine::time_ratio(machine::processor_clock, steps, f);
  };
  const double mib = double(heads) / (1 << 20), own = double(bytes_of(plain.states[0])) * mib;
  std::printf("| %td | %d | %.1f | %.1f | %.1f | %.2f | %.2f |\n", d, R, own,
              double(bytes_of(kept.states[0])) * mib, own * (R + 1), over_steps(roll_back),
              over_steps(copies));
  std::fflush(stdout);
}

}  // namespace

int main() {
  std::printf(
      "| d | R | MiB of %td heads | with R | with snapshots | time with R over steps | time with "
      "snapshots over steps |\n|---:|---:|---:|---:|---:|---:|---:|\n",
      heads);
  for (const Index d : {64, 128, 256}) {
    print<4>(d);
    print<16>(d);
  }
}
