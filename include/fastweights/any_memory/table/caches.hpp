#pragma once

#include <fastweights/any_memory/memory_table.hpp>
#include <fastweights/memories/attention/key_value_cache.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// The cache of softmax attention, apart from other attention because every network includes it.
template <class S> void add_caches(MemoryTable<S>& table) {
  table.add("KeyValueCache", [](auto& o) {
    return KeyValueCache<S>(
        o.sizes(), {.capacity = o.integer("capacity", 1024),
                    .when_full = o.flag("refuse", false) ? WhenFull::refuse : WhenFull::slide,
                    .scale = S(o.number("scale", 0))});
  });
}

#define FASTWEIGHTS_CACHES(prefix, S) FASTWEIGHTS_ERASED(prefix, KeyValueCache<S>)

FASTWEIGHTS_COMPILED_RULES(FASTWEIGHTS_CACHES);

}  // namespace fw::detail
