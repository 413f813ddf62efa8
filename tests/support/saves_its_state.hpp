#pragma once

#include <fastweights/algorithms/scan.hpp>
#include <fastweights/io/weights.hpp>
#include <fastweights/testing/sequences.hpp>

#include "support/catch.hpp"

/// Checks that a saved and loaded stream continues with the same bits.
template <class M> void saves_its_state(const M& m) {
  fw::Random random(3);
  auto state = fw::testing::random_state(m, 7, random, true);
  fw::io::SafeTensorsWriter writer;
  fw::io::add_state(writer, state, "stream");
  auto loaded = fw::initial_state(m);
  fw::io::load_state(loaded, fw::io::SafeTensors::parse(writer.bytes()), "stream");
  auto a = fw::testing::random_sequences(m, 9, random, true);
  auto b = a;
  const auto scan = [&](auto& s, auto& all) {
    fw::scan(m, s, fw::view<fw::WriteSequence<M>>(all.inputs),
             fw::view<fw::ReadSequence<M>>(all.queries), fw::view<fw::OutSequence<M>>(all.outputs));
  };
  scan(state, a);
  scan(loaded, b);
  CHECK(a.outputs.output == b.outputs.output);
  fw::for_each_leaf([](const auto& x, const auto& y) { CHECK(x == y); }, state, loaded);
}
