#pragma once

#include <fastweights/any_memory/memory_table.hpp>
#include <fastweights/memories/rules/gated_linear_attention.hpp>
#include <fastweights/memories/rules/mlstm.hpp>
#include <fastweights/memories/rules/normalised_gated_attention.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// Memories that forget by a gate of every token.
template <class S> void add_gated(MemoryTable<S>& table) {
  constexpr MemoryFacts positive{.positive_keys = true};
  table.add("GatedLinearAttention", [](auto& o) { return GatedLinearAttention<S>(o.sizes()); });
  table.add("SimpleGatedLinearAttention", [](auto& o) {
    return GatedLinearAttention<S, Dynamic, Dynamic, KeyValueDecay>(o.sizes());
  });
  table.add(
      "NormalisedGatedAttention",
      [](auto& o) { return NormalisedGatedAttention<S>(o.sizes(), S(o.number("epsilon", 1e-6))); },
      positive);
  table.add(
      "NormalisedVectorGatedAttention",
      [](auto& o) {
        return NormalisedGatedAttention<S, Dynamic, Dynamic, KeyValueVectorDecay>(
            o.sizes(), S(o.number("epsilon", 1e-6)));
      },
      positive);
  table.add("Mlstm", [](auto& o) { return Mlstm<S>(o.sizes(), S(o.number("epsilon", 1e-6))); });
}

#define FASTWEIGHTS_GATED(prefix, S)                                                    \
  FASTWEIGHTS_ERASED(prefix, GatedLinearAttention<S>);                                  \
  FASTWEIGHTS_ERASED(prefix, GatedLinearAttention<S, Dynamic, Dynamic, KeyValueDecay>); \
  FASTWEIGHTS_ERASED(prefix, Mlstm<S>)

FASTWEIGHTS_COMPILED_RULES(FASTWEIGHTS_GATED);

}  // namespace fw::detail
