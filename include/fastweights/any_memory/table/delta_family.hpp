#pragma once

#include <fastweights/any_memory/memory_table.hpp>
#include <fastweights/memories/rules/comba.hpp>
#include <fastweights/memories/rules/efla.hpp>
#include <fastweights/memories/rules/fine_grained_delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_rule_2.hpp>
#include <fastweights/memories/rules/q_delta.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// The family of the delta rule.
template <class S> void add_delta_family(MemoryTable<S>& table) {
  table.add("Comba", [](auto& o) { return Comba<S>(o.sizes()); });
  table.add("Efla", [](auto& o) { return Efla<S>(o.sizes()); });
  table.add("FineGrainedDeltaRule", [](auto& o) { return FineGrainedDeltaRule<S>(o.size()); },
            {.square = true});
  table.add("QDelta", [](auto& o) { return QDelta<S>(o.sizes()); });
  table.add("GatedDeltaRule2", [](auto& o) { return GatedDeltaRule2<S>(o.sizes()); });
}

#define FASTWEIGHTS_DELTA_FAMILY(prefix, S)            \
  FASTWEIGHTS_ERASED(prefix, Comba<S>);                \
  FASTWEIGHTS_ERASED(prefix, Efla<S>);                 \
  FASTWEIGHTS_ERASED(prefix, FineGrainedDeltaRule<S>); \
  FASTWEIGHTS_ERASED(prefix, QDelta<S>);               \
  FASTWEIGHTS_ERASED(prefix, GatedDeltaRule2<S>)

FASTWEIGHTS_COMPILED_RULES(FASTWEIGHTS_DELTA_FAMILY);

}  // namespace fw::detail
