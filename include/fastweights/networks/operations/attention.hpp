#pragma once

#include <fastweights/any_memory/table/caches.hpp>
#include <fastweights/networks/operations/memory.hpp>

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// Causal softmax attention over a cache of keys and values, which grows with the text unless
/// `cache` says otherwise; consecutive queries share a key head. Ainslie et al. 2023, arXiv
/// 2305.13245.
template <class S>
Value<S> attention(const Value<S>& queries, const Value<S>& keys, const Value<S>& values,
                   Index key_heads, const CacheOptions& cache) {
  return memory(
      KeyValueCache<S>({keys.rows_of_part(key_heads), values.rows_of_part(key_heads)}, cache),
      {keys, values}, {queries}, "cache");
}
/// Attention over a window: it looks back `window` tokens and forgets those before.
template <class S>
Value<S> attention(const Value<S>& queries, const Value<S>& keys, const Value<S>& values,
                   Index key_heads, Index window, double scale = 0) {
  return attention(queries, keys, values, key_heads, {window, WhenFull::slide, scale});
}

}  // namespace fw::networks
