#pragma once

#include <fastweights/any_memory/memory_table.hpp>
#include <fastweights/memories/recurrent/recurrent_delta_net.hpp>
#include <fastweights/memories/recurrent/self_referential_matrix.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// Recurrent fast weight programmers.
template <class S> void add_recurrent(MemoryTable<S>& table) {
  table.add("RecurrentDeltaNet", [](auto& o) { return RecurrentDeltaNet<S>(o.sizes()); });
  table.add("SelfReferentialMatrix", [](auto& o) { return SelfReferentialMatrix<S>(o.sizes()); });
}

#define FASTWEIGHTS_RECURRENT(prefix, S)            \
  FASTWEIGHTS_ERASED(prefix, RecurrentDeltaNet<S>); \
  FASTWEIGHTS_ERASED(prefix, SelfReferentialMatrix<S>)

FASTWEIGHTS_COMPILED_RULES(FASTWEIGHTS_RECURRENT);

}  // namespace fw::detail
