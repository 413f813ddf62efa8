#pragma once

#include <fastweights/any_memory/memory_table.hpp>
#include <fastweights/memories/recurrent/delta_delta_net.hpp>
#include <fastweights/memories/recurrent/delta_lstm.hpp>
#include <fastweights/memories/recurrent/delta_mlp.hpp>
#include <fastweights/memories/recurrent/delta_rnn.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// Networks whose weights are fast.
template <class S> void add_fast_nets(MemoryTable<S>& table) {
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
}

#define FASTWEIGHTS_FAST_NETS(prefix, S)   \
  FASTWEIGHTS_ERASED(prefix, DeltaRnn<S>); \
  FASTWEIGHTS_ERASED(prefix, DeltaLstm<S>)

FASTWEIGHTS_COMPILED_RULES(FASTWEIGHTS_FAST_NETS);

}  // namespace fw::detail
