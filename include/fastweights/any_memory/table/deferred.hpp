#pragma once

#include <fastweights/any_memory/memory_table.hpp>
#include <fastweights/memories/adaptors/deferred.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_product.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

// The rules of a scalar that can wait with their writes: those with kernels.
template <class S, bool = KernelScalar<S>> struct DeferredMemories {
  static void add(MemoryTable<S>&) {}
};
template <class S> struct DeferredMemories<S, true> {
  using Sum = LinearAttention<S, Dynamic, Dynamic, AttentionNormaliser<S>>;
  using Delta = DeltaRule<S>;
  using Normalised = DeltaRule<S, Dynamic, Dynamic, AttentionNormaliser<S>>;
  using Kimi = GatedDeltaRule<S, Dynamic, Dynamic, KeyValueBetaVectorDecay>;
  using Product = GatedDeltaProduct<S, 2>;

  static void add(MemoryTable<S>& table) {
    table.add("DeferredNormalisedLinearAttention",
              [](auto& o) { return Deferred<Sum>(Sum(o.sizes())); }, {.positive_keys = true});
    table.add("DeferredDeltaRule", [](auto& o) { return Deferred<Delta>(Delta(o.sizes())); });
    table.add("DeferredNormalisedDeltaRule",
              [](auto& o) { return Deferred<Normalised, 5>(Normalised(o.sizes())); },
              {.positive_keys = true});
    table.add("DeferredKimiDeltaAttention",
              [](auto& o) { return Deferred<Kimi, 8, S, 4>(Kimi(o.sizes())); });
    table.add("DeferredGatedDeltaProduct",
              [](auto& o) { return Deferred<Product, 3, S, 1>(Product(o.sizes())); });
    if constexpr (std::is_same_v<S, float>) {
      table.add("Bfloat16DeltaRule",
                [](auto& o) { return Deferred<Delta, 8, Eigen::bfloat16>(Delta(o.sizes())); });
      table.add("EightBitDeltaRule",
                [](auto& o) { return Deferred<Delta, 8, std::int8_t>(Delta(o.sizes())); });
    }
  }
};

/// Memories that write their matrix once in several tokens.
template <class S> void add_deferred(MemoryTable<S>& table) { DeferredMemories<S>::add(table); }

}  // namespace fw::detail
