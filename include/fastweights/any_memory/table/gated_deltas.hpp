#pragma once

#include <fastweights/any_memory/memory_table.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/rwkv6.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// The delta rule with a decay, and RWKV-6.
template <class S> void add_gated_deltas(MemoryTable<S>& table) {
  table.add("GatedDeltaRule", [](auto& o) { return GatedDeltaRule<S>(o.sizes()); });
  table.add("KimiDeltaAttention", [](auto& o) {
    return GatedDeltaRule<S, Dynamic, Dynamic, KeyValueBetaVectorDecay>(o.sizes());
  });
  table.add("Rwkv6", [](auto& o) { return Rwkv6<S>(o.sizes()); });
}

#define FASTWEIGHTS_GATED_DELTAS(prefix, S)                                                 \
  FASTWEIGHTS_ERASED(prefix, GatedDeltaRule<S>);                                            \
  FASTWEIGHTS_ERASED(prefix, GatedDeltaRule<S, Dynamic, Dynamic, KeyValueBetaVectorDecay>); \
  FASTWEIGHTS_ERASED(prefix, Rwkv6<S>)

FASTWEIGHTS_COMPILED_RULES(FASTWEIGHTS_GATED_DELTAS);

}  // namespace fw::detail
