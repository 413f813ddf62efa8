#pragma once

#include <fastweights/any_memory/table.hpp>
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

}  // namespace fw::detail
