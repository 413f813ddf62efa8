#pragma once

#include <fastweights/any_memory/table.hpp>

/// \file
/// The groups of the table. Each group is compiled in a source of its own for each scalar
/// (cmake/fastweights-memories.cmake); the table puts them together.

#define FASTWEIGHTS_MEMORY_GROUPS(GROUP) \
  GROUP(sums)                            \
  GROUP(deltas)                          \
  GROUP(gated)                           \
  GROUP(channels)                        \
  GROUP(gated_deltas)                    \
  GROUP(delta_family)                    \
  GROUP(delta_removals)                  \
  GROUP(delta_products)                  \
  GROUP(delta_rows)                      \
  GROUP(learners)                        \
  GROUP(windows)                         \
  GROUP(segments)                        \
  GROUP(models)                          \
  GROUP(fast_nets)                       \
  GROUP(recurrent)                       \
  GROUP(state_spaces)                    \
  GROUP(caches)                          \
  GROUP(attention)                       \
  GROUP(continuous)                      \
  GROUP(mapped_sums)                     \
  GROUP(feature_mapped)                  \
  GROUP(deferred)

namespace fw::inline FASTWEIGHTS_ABI::detail {

#define FASTWEIGHTS_DECLARE_GROUP(group) template <class S> void add_##group(MemoryTable<S>& table);
FASTWEIGHTS_MEMORY_GROUPS(FASTWEIGHTS_DECLARE_GROUP)
#undef FASTWEIGHTS_DECLARE_GROUP

template <class S> const TableEntry<S>& MemoryTable<S>::find(std::string_view name) const {
  std::vector<std::string_view> known;
  for (const TableEntry<S>& entry : entries) {
    if (entry.name == name) return entry;
    known.push_back(entry.name);
  }
  throw_unknown_memory(name, known);
}

template <class S> const MemoryTable<S>& memory_table() {
  static const MemoryTable<S> all = [] {
    MemoryTable<S> table;
#define FASTWEIGHTS_ADD_GROUP(group) add_##group(table);
    FASTWEIGHTS_MEMORY_GROUPS(FASTWEIGHTS_ADD_GROUP)
#undef FASTWEIGHTS_ADD_GROUP
    return table;
  }();
  return all;
}

// A source that sees all groups would compile those rules of them that are in no list.
#define FASTWEIGHTS_MEMORY_TABLE(prefix, S) prefix template const MemoryTable<S>& memory_table()
FASTWEIGHTS_COMPILED_RULES(FASTWEIGHTS_MEMORY_TABLE);

}  // namespace fw::detail
