#pragma once

#include <fastweights/any_memory/memory_table.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// The delta rule.
template <class S> void add_deltas(MemoryTable<S>& table) {
  constexpr MemoryFacts positive{.positive_keys = true};
  using Normaliser = AttentionNormaliser<S>;
  table.add("DeltaRule", [](auto& o) { return DeltaRule<S>(o.sizes()); });
  table.add("VectorDeltaRule", [](auto& o) {
    return DeltaRule<S, Dynamic, Dynamic, NoNormaliser, KeyValueVectorBeta>(o.sizes());
  });
  table.add(
      "NormalisedDeltaRule",
      [](auto& o) {
        return DeltaRule<S, Dynamic, Dynamic, Normaliser>(o.sizes(),
                                                          {S(o.number("epsilon", 1e-5))});
      },
      positive);
  table.add(
      "NormalisedVectorDeltaRule",
      [](auto& o) {
        return DeltaRule<S, Dynamic, Dynamic, Normaliser, KeyValueVectorBeta>(
            o.sizes(), {S(o.number("epsilon", 1e-5))});
      },
      positive);
}

#define FASTWEIGHTS_DELTAS(prefix, S)       \
  FASTWEIGHTS_ERASED(prefix, DeltaRule<S>); \
  FASTWEIGHTS_ERASED(prefix, DeltaRule<S, Dynamic, Dynamic, NoNormaliser, KeyValueVectorBeta>)

FASTWEIGHTS_COMPILED_RULES(FASTWEIGHTS_DELTAS);

}  // namespace fw::detail
