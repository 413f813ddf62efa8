#pragma once

#include <fastweights/any_memory/memory_table.hpp>
#include <fastweights/memories/rules/cyclic_flow_attention.hpp>
#include <fastweights/memories/rules/hgrn.hpp>
#include <fastweights/memories/rules/rwkv4.hpp>
#include <fastweights/memories/rules/selective_scan.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// Memories with a recurrence for every channel, HGRN, RWKV-4 and Mamba, or for every frequency.
template <class S> void add_channels(MemoryTable<S>& table) {
  constexpr MemoryFacts square{.square = true};
  table.add(
      "Hgrn", [](auto& o) { return Hgrn<S>(o.size()); }, square);
  table.add(
      "Rwkv4", [](auto& o) { return Rwkv4<S>(o.size()); }, square);
  table.add("SelectiveScan", [](auto& o) { return SelectiveScan<S>(o.sizes()); });
  table.add("CyclicFlowAttention", [](auto& o) {
    return CyclicFlowAttention<S>(o.sizes(), o.integer("frequencies", 32));
  });
}

#define FASTWEIGHTS_CHANNELS(prefix, S) \
  FASTWEIGHTS_ERASED(prefix, Hgrn<S>);  \
  FASTWEIGHTS_ERASED(prefix, Rwkv4<S>); \
  FASTWEIGHTS_ERASED(prefix, SelectiveScan<S>)

FASTWEIGHTS_COMPILED_RULES(FASTWEIGHTS_CHANNELS);

}  // namespace fw::detail
