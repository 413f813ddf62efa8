#pragma once

#include <fastweights/any_memory/memory_table.hpp>
#include <fastweights/memories/rules/gated_delta_product.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// Several writes of the delta rule a token.
template <class S> void add_delta_products(MemoryTable<S>& table) {
  table.add("GatedDeltaProduct", [](auto& o) { return GatedDeltaProduct<S, 2>(o.sizes()); });
  table.add("GatedDeltaProduct1", [](auto& o) { return GatedDeltaProduct<S, 1>(o.sizes()); });
  table.add("GatedDeltaProduct3", [](auto& o) { return GatedDeltaProduct<S, 3>(o.sizes()); });
}

#define FASTWEIGHTS_DELTA_PRODUCTS(prefix, S)          \
  FASTWEIGHTS_ERASED(prefix, GatedDeltaProduct<S, 1>); \
  FASTWEIGHTS_ERASED(prefix, GatedDeltaProduct<S, 2>); \
  FASTWEIGHTS_ERASED(prefix, GatedDeltaProduct<S, 3>); \
  FASTWEIGHTS_ERASED(prefix, GatedDeltaProduct<S, 4>)

FASTWEIGHTS_COMPILED_RULES(FASTWEIGHTS_DELTA_PRODUCTS);

}  // namespace fw::detail
