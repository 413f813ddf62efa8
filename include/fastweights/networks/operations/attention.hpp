#pragma once

#include <fastweights/any_memory/table/caches.hpp>
#include <fastweights/networks/operations/memory.hpp>

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// Causal softmax attention over a cache of keys and values, which can look back `context` tokens;
/// consecutive queries share a key head. `scale` 0: 1/√d_k. Ainslie et al. 2023, arXiv 2305.13245.
template <class S>
Value<S> attention(const Value<S>& queries, const Value<S>& keys, const Value<S>& values,
                   Index key_heads, Index context, double scale = 0) {
  return memory(KeyValueCache<S>({keys.rows_of_part(key_heads), values.rows_of_part(key_heads)},
                                 {context, WhenFull::slide, S(scale)}),
                {keys, values}, {queries}, "cache");
}

}  // namespace fw::networks
