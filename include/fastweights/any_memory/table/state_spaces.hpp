#pragma once

#include <fastweights/any_memory/memory_table.hpp>
#include <fastweights/memories/rules/gated_slot_attention.hpp>
#include <fastweights/memories/rules/log_linear_attention.hpp>
#include <fastweights/memories/rules/mamba3.hpp>
#include <fastweights/memories/rules/mamba3_mimo.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// State spaces, and memories of slots and levels.
template <class S> void add_state_spaces(MemoryTable<S>& table) {
  table.add("LogLinearAttention",
            [](auto& o) { return LogLinearAttention<S>(o.sizes(), o.integer("levels", 13)); });
  table.add("GatedSlotAttention",
            [](auto& o) { return GatedSlotAttention<S>(o.sizes(), o.integer("slots", 64)); });
  table.add("Mamba3", [](auto& o) {
    return Mamba3<S>(o.sizes(), o.integer("angles", o.sizes().key_size / 2));
  });
  table.add("Mamba3Mimo", [](auto& o) {
    const Index ranks = o.integer("ranks", Mamba3Mimo<S>::usual_ranks);
    return Mamba3Mimo<S>(o.sizes(), ranks, o.integer("angles", o.sizes().key_size / 2));
  });
}

#define FASTWEIGHTS_STATE_SPACES(prefix, S) FASTWEIGHTS_ERASED(prefix, GatedSlotAttention<S>)

FASTWEIGHTS_COMPILED_RULES(FASTWEIGHTS_STATE_SPACES);

}  // namespace fw::detail
