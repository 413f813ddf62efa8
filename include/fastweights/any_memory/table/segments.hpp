#pragma once

#include <fastweights/any_memory/memory_table.hpp>
#include <fastweights/memories/adaptors/cached_segments.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

template <class M, class Options> auto cached(Options& o) {
  const Sizes<> sizes = o.sizes();
  SegmentOptions options;
  options.segment = o.integer("segment", options.segment);
  options.capacity = o.integer("capacity", options.capacity);
  options.when_full = o.flag("refuse", false) ? WhenFull::refuse : WhenFull::slide;
  options.restart = o.flag("restart", true);
  const Index pooled_size = o.integer("pooled_size", sizes.key_size);
  return CachedSegments<M>(M(sizes), pooled_size, options);
}

/// Memories that keep their state of every segment.
template <class S> void add_segments(MemoryTable<S>& table) {
  table.add("CachedDeltaRule", [](auto& o) { return cached<DeltaRule<S>>(o); });
  table.add("CachedGatedDeltaRule", [](auto& o) { return cached<GatedDeltaRule<S>>(o); });
}

}  // namespace fw::detail
