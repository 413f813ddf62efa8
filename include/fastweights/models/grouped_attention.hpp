#pragma once

#include <fastweights/models/parts.hpp>

namespace fw::inline FASTWEIGHTS_ABI::models {

/// Sizes and options of plain softmax attention with shared key heads.
struct GroupedAttention {
  Index heads = 1, key_heads = 1, d = 1;  ///< d: of a head
  bool bias = false;                      ///< of all four maps
  bool output_bias = false;               ///< of the last map, if the others have none
  double theta = 0;                       ///< of rotary positions; 0: no positions
  double rotated = 1;                     ///< part of a head that rotates
  double key_factor = 1;                  ///< of the keys
  CacheOptions cache = {};                ///< of keys and values, and the scale of the products
};

/// The sizes under the names that most models have.
inline GroupedAttention grouped_attention_options(const Config& c, const ModelOptions& options) {
  const Index heads = c.size("num_attention_heads");
  GroupedAttention o{.heads = heads,
                     .key_heads = c.size("num_key_value_heads", heads),
                     .d = c.has("head_dim") ? c.size("head_dim") : c.size("hidden_size") / heads,
                     .bias = c.flag("attention_bias"),
                     .cache = cache_of(options)};
  if (o.d < 1) c.fail("num_attention_heads", "expected at most hidden_size");
  if (o.heads % o.key_heads != 0) c.fail("num_key_value_heads", "expected a divisor of the heads");
  return o;
}

/// Rotary positions on `part` of a head. If that is an odd number r of entries, one more rotates,
/// as published code does, with the speeds θ^(−2i/r).
template <class S> Value<S> rotate_part(const Value<S>& x, Index heads, double part, double theta) {
  const Index r = Index(part * double(x.rows() / heads)), even = r + r % 2;
  if (r < 1) return x;
  return rotary_embedding(x, heads, even,
                          r == even ? theta : std::pow(theta, double(even) / double(r)));
}

/// Causal softmax attention over heads. Ainslie et al. 2023, arXiv 2305.13245.
template <class S> Value<S> grouped_attention(const Value<S>& x, const GroupedAttention& o) {
  const auto positions = [&](const Value<S>& v, Index heads) {
    return o.theta > 0 ? rotate_part(v, heads, o.rotated, o.theta) : v;
  };
  Value<S> keys = linear(x, "k_proj", o.key_heads * o.d, o.bias);
  if (o.key_factor != 1) keys = o.key_factor * keys;
  const Value<S> y = attention(
      positions(linear(x, "q_proj", o.heads * o.d, o.bias), o.heads), positions(keys, o.key_heads),
      linear(x, "v_proj", o.key_heads * o.d, o.bias), o.key_heads, o.cache);
  return linear(y, "o_proj", x.rows(), o.bias || o.output_bias);
}

}  // namespace fw::models
