#pragma once

#include <fastweights/any_memory/memory_table.hpp>
#include <fastweights/memories/recurrent/delta_delta_net.hpp>
#include <fastweights/memories/recurrent/delta_lstm.hpp>
#include <fastweights/memories/recurrent/delta_mlp.hpp>
#include <fastweights/memories/recurrent/delta_rnn.hpp>
#include <fastweights/memories/recurrent/recurrent_delta_net.hpp>
#include <fastweights/memories/recurrent/self_referential_matrix.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// Recurrent fast weight programmers and fast nets.
template <class S> void add_recurrent(MemoryTable<S>& table) {
  constexpr MemoryFacts square{.square = true};
  table.add("DeltaRnn", [](auto& o) { return DeltaRnn<S>(o.sizes()); });
  table.add("DeltaLstm", [](auto& o) { return DeltaLstm<S>(o.sizes()); });
  table.add(
      "DeltaDeltaNet", [](auto& o) { return DeltaDeltaNet<S>(o.size()); }, square);
  table.add(
      "DeltaMlp",
      [](auto& o) {
        const Index d = o.size();
        return DeltaMlp<S>(d, o.integer("hidden", 4 * d));
      },
      square);
  table.add("RecurrentDeltaNet", [](auto& o) { return RecurrentDeltaNet<S>(o.sizes()); });
  table.add("SelfReferentialMatrix", [](auto& o) { return SelfReferentialMatrix<S>(o.sizes()); });
}

}  // namespace fw::detail
