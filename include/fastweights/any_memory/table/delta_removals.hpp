#pragma once

#include <fastweights/any_memory/memory_table.hpp>
#include <fastweights/memories/rules/erase_then_delta.hpp>
#include <fastweights/memories/rules/low_rank_rule.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// Rules that remove with one key and write with another.
template <class S> void add_delta_removals(MemoryTable<S>& table) {
  table.add("EraseThenDelta", [](auto& o) { return EraseThenDelta<S>(o.sizes()); });
  table.add("ScalarEraseThenDelta",
            [](auto& o) { return EraseThenDelta<S, Dynamic, Dynamic, false>(o.sizes()); });
  table.add("LowRankRule", [](auto& o) { return LowRankRule<S>(o.sizes()); });
  table.add("IdentityLowRankRule",
            [](auto& o) { return LowRankRule<S, Dynamic, Dynamic, KeyValueRemoval>(o.sizes()); });
}

#define FASTWEIGHTS_DELTA_REMOVALS(prefix, S)    \
  FASTWEIGHTS_ERASED(prefix, EraseThenDelta<S>); \
  FASTWEIGHTS_ERASED(prefix, LowRankRule<S>)

FASTWEIGHTS_COMPILED_RULES(FASTWEIGHTS_DELTA_REMOVALS);

}  // namespace fw::detail
