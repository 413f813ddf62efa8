// The cost of rolling back draft tokens: the writes of a Deferred memory with R > 0 beside a
// snapshot of the state before every draft. Each round writes R drafts to the gated delta rule's
// states of 32 heads and rolls half of them back.
//
//     build/release/benchmarks/roll_back

#include <cstdio>
#include <vector>

#include "compare.hpp"
#include "machine.hpp"
#include "stream.hpp"

namespace {

using stream::bytes_of;
using stream::Index;
using stream::Rule;
using stream::Stream;
constexpr Index heads = 32;

template <int R> void print(Index d) {
  Stream<fw::Deferred<Rule, 8>> plain(d, heads), copied(d, heads);
  Stream<fw::Deferred<Rule, 8, float, R>> kept(d, heads);
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
