#pragma once

#include <fastweights/any_memory/memory_table.hpp>
#include <fastweights/memories/rules/atlas_memory.hpp>
#include <fastweights/memories/rules/fast_weight_memory.hpp>
#include <fastweights/memories/rules/momentum_delta_rule.hpp>
#include <fastweights/memories/rules/omega_memory.hpp>
#include <fastweights/memories/rules/recursive_least_squares.hpp>
#include <fastweights/memories/rules/titans_memory.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// Rules with a momentum, learners from a window of tokens, the fast weight memory, and recursive
/// least squares.
template <class S> void add_windows(MemoryTable<S>& table) {
  table.add("MomentumDeltaRule", [](auto& o) { return MomentumDeltaRule<S>(o.sizes()); });
  table.add("TitansMemory", [](auto& o) { return TitansMemory<S>(o.sizes()); });
  table.add("OmegaMemory",
            [](auto& o) { return OmegaMemory<S>(o.sizes(), o.integer("window", 4)); });
  table.add("AtlasMemory",
            [](auto& o) { return AtlasMemory<S>(o.sizes(), o.integer("window", 4)); });
  table.add("FastWeightMemory",
            [](auto& o) { return FastWeightMemory<S>(o.sizes(), S(o.number("epsilon", 1e-5))); });
  table.add("RecursiveLeastSquares", [](auto& o) {
    return RecursiveLeastSquares<S>(o.sizes(), {o.number("ridge", 1), o.number("largest", 1e4)});
  });
}

#define FASTWEIGHTS_WINDOWS(prefix, S) FASTWEIGHTS_ERASED(prefix, FastWeightMemory<S>)

FASTWEIGHTS_COMPILED_RULES(FASTWEIGHTS_WINDOWS);

}  // namespace fw::detail
