#pragma once

#include <fastweights/any_memory/memory_table.hpp>
#include <fastweights/memories/attention/key_value_cache.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// The cache of softmax attention, apart from other attention because every network includes it.
template <class S> void add_caches(MemoryTable<S>& table) {
  table.add("KeyValueCache", [](auto& o) {
    const Index capacity = o.integer("capacity", 1024);
    const bool refuses = o.flag("refuse", false), slides = o.flag("slide", false);
    if (refuses && slides) o.fail("refuse and slide are 1, expected at most one of them");
    return KeyValueCache<S>(o.sizes(), {.capacity = capacity,
                                        .when_full = refuses  ? WhenFull::refuse
                                                     : slides ? WhenFull::slide
                                                              : WhenFull::grow,
                                        .scale = o.number("scale", 0)});
  });
}

#define FASTWEIGHTS_CACHES(prefix, S) FASTWEIGHTS_ERASED(prefix, KeyValueCache<S>)

FASTWEIGHTS_COMPILED_RULES(FASTWEIGHTS_CACHES);

}  // namespace fw::detail
