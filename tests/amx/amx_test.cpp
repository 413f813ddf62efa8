// The scan with AMX intrinsics against emulated tiles, compiled with -mamx-tile -mamx-bf16. It runs
// in hardware if the process may use AMX; otherwise a signal handler emulates every instruction.
// Prints one line per case and fails if any case fails.

#include <cstdio>
#include <fastweights/memories/adaptors/amx_scan.hpp>
#include <fastweights/testing/sequences.hpp>

#include "trap.hpp"

#if !FASTWEIGHTS_HAS_AMX
#error "compile this file with -mamx-tile -mamx-bf16"
#endif

namespace {

using fw::AmxPrecision;
using fw::Index;
using Memory = fw::DeltaRule<float>;

struct Run {
  fw::testing::Sequences<Memory> all;
  fw::StateOf<Memory> state;

  template <class Scan> Run(const Memory& m, Index steps, const Scan& scan) {
    fw::Random random(3);
    state = fw::testing::random_state(m, 20, random);
    all = fw::testing::random_sequences(m, steps, random);
    scan(m, state, fw::view<fw::WriteSequence<Memory>>(all.inputs),
         fw::view<fw::ReadSequence<Memory>>(all.queries),
         fw::view<fw::OutSequence<Memory>>(all.outputs));
  }
  const auto& outputs() const { return all.outputs.output; }
};

// False for NaN.
bool near(const Run& a, const Run& b, float bound) {
  return (a.outputs() - b.outputs()).norm() <= bound * b.outputs().norm() &&
         (a.state.W - b.state.W).norm() <= bound * b.state.W.norm();
}

// The signal handler must give the same bits. A processor may round sums differently, and therefore
// also factors.
bool check(Index dk, Index dv, Index steps, AmxPrecision precision) {
  const Memory m({dk, dv});
  const Run amx(m, steps, [&](auto&&... given) {
    fw::detail::tile_scan<fw::detail::AmxTiles>(given..., precision);
  });
  const Run emulated(m, steps, [&](auto&&... given) {
    fw::detail::tile_scan<EmulatedTiles>(given..., precision);
  });
  const bool good = near(amx, emulated, fw::amx_permitted() ? 1e-3f : 0);
  std::printf("d_v %ld d_k %ld T %ld %s: %s\n", long(dv), long(dk), long(steps),
              precision == AmxPrecision::bf16 ? "bf16" : "split", good ? "equal" : "DIFFERENT");
  return good;
}

}  // namespace

int main() {
  std::printf("AMX is %spermitted\n", fw::amx_permitted() ? "" : "not ");
  if (!fw::amx_permitted()) trap::set();
  bool good = true;
  for (const auto precision : {AmxPrecision::bf16, AmxPrecision::split})
    for (const Index d : {1, 40, 64})
      for (const Index steps : {1, 64, 100}) good = check(d + 3, d, steps, precision) && good;
  if (fw::amx_permitted()) return good ? 0 : 1;
  std::printf("%ld instructions trapped\n", long(trap::instructions));
  return good && trap::instructions > 0 && !trap::configured ? 0 : 1;
}
