#pragma once

#include <fastweights/any_memory/memory_table.hpp>
#include <fastweights/memories/rules/gated_oja_rule.hpp>
#include <fastweights/memories/rules/longhorn.hpp>
#include <fastweights/memories/rules/preconditioned_delta_rule.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// Delta rules whose decay or strength is a vector.
template <class S> void add_delta_rows(MemoryTable<S>& table) {
  table.add("PreconditionedDeltaRule",
            [](auto& o) { return PreconditionedDeltaRule<S>(o.sizes()); });
  table.add("VectorPreconditionedDeltaRule", [](auto& o) {
    return PreconditionedDeltaRule<S, Dynamic, Dynamic, Dynamic>(o.sizes());
  });
  table.add("GatedOjaRule", [](auto& o) { return GatedOjaRule<S>(o.sizes()); });
  table.add("Longhorn", [](auto& o) { return Longhorn<S>(o.sizes()); });
  table.add("ExactLonghorn",
            [](auto& o) { return Longhorn<S, Dynamic, Dynamic, LonghornForm::exact>(o.sizes()); });
}

#define FASTWEIGHTS_DELTA_ROWS(prefix, S) FASTWEIGHTS_ERASED(prefix, PreconditionedDeltaRule<S>)

FASTWEIGHTS_COMPILED_RULES(FASTWEIGHTS_DELTA_ROWS);

}  // namespace fw::detail
