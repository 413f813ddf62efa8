#pragma once

#include <fastweights/any_memory/memory_table.hpp>
#include <fastweights/memories/attention/compressive_memory.hpp>
#include <fastweights/memories/attention/delta_former.hpp>
#include <fastweights/memories/attention/forgetting_attention.hpp>
#include <fastweights/memories/attention/parallax.hpp>
#include <fastweights/memories/attention/path_attention.hpp>
#include <fastweights/memories/attention/stick_breaking_attention.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// Attention to the last tokens, which are kept.
template <class S> void add_attention(MemoryTable<S>& table) {
  table.add("ForgettingAttention", [](auto& o) {
    return ForgettingAttention<S>(o.sizes(), {o.integer("capacity", 1024), o.number("scale", 0)});
  });
  table.add("PathAttention", [](auto& o) {
    return PathAttention<S>(o.sizes(), {o.integer("capacity", 1024), o.number("scale", 0)});
  });
  table.add("DeltaFormer", [](auto& o) {
    return DeltaFormer<S>(o.sizes(), {o.integer("capacity", 1024), o.number("scale", 0)});
  });
  table.add("Parallax", [](auto& o) {
    return Parallax<S>(o.sizes(), {o.integer("capacity", 1024), o.number("scale", 0)});
  });
  table.add("StickBreakingAttention", [](auto& o) {
    return StickBreakingAttention<S>(o.sizes(),
                                     {o.integer("capacity", 1024), o.number("scale", 0)});
  });
  table.add("StrictStickBreakingAttention", [](auto& o) {
    return StickBreakingAttention<S, Dynamic, Dynamic, false>(
        o.sizes(), {o.integer("capacity", 1024), o.number("scale", 0)});
  });
  table.add("CompressiveMemory",
            [](auto& o) {
              return CompressiveMemory<S>({.d = o.size(),
                                           .heads = o.integer("heads", 1),
                                           .chunk = o.integer("chunk", 1),
                                           .capacity = o.integer("capacity", 64),
                                           .rate = o.integer("rate", 4)});
            },
            {.square = true});
}

#define FASTWEIGHTS_ATTENTION(prefix, S) FASTWEIGHTS_ERASED(prefix, CompressiveMemory<S>)

FASTWEIGHTS_COMPILED_RULES(FASTWEIGHTS_ATTENTION);

}  // namespace fw::detail
