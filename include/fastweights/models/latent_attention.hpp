#pragma once

#include <fastweights/models/parts.hpp>
#include <fastweights/networks/operations/head_products.hpp>

/// \file
/// Multi-head latent attention: keys and values of all heads are projections of one latent vector,
/// and only that is in the cache. DeepSeek-AI 2024, arXiv 2405.04434, section 2.1. For a token and
/// a head h:
///
///     c | r = W_a x     c ← w ⊙ rms(c)     k_h | v_h = W_h c     q_h | s_h = W_q x
///     y_h = Σ_i p_i v_hi,   p = softmax over i of (q_h·k_hi + s_h·r_i) / √(d_q + d_r)
///     y = W_o (y_1 | y_2 | …)
///
/// where r and s_h may carry rotary positions, and y_h a gate σ(w_h·x). As q·(W c) = (Wᵀ q)·c, all
/// heads read the same key c | r and the same value c, and W_h is applied to their queries and
/// outputs.

namespace fw::inline FASTWEIGHTS_ABI::models {

/// Sizes, options and names of a layer.
struct LatentAttention {
  Index heads = 1, latent = 1;      ///< query heads, and the rows of c
  Index d_q = 1, d_r = 1, d_v = 1;  ///< of a head: without and with positions, value
  Index query_rank = 0;             ///< rank of W_q; 0: full
  bool bias = false;                ///< of the maps from x to latents and of the output
  double theta = 0;                 ///< of rotary positions in adjacent pairs; 0: no positions
  std::string gate = {};            ///< of a head's output, σ of this map; empty: no gate
  std::string output = "o_proj";    ///< the name of W_o
  CacheOptions cache = {};          ///< of latents; the scale is that of the sizes
};

/// The sizes under DeepSeek's names.
inline LatentAttention latent_attention_options(const Config& c, const ModelOptions& options) {
  return {.heads = c.size("num_attention_heads"),
          .latent = c.size("kv_lora_rank"),
          .d_q = c.size("qk_nope_head_dim"),
          .d_r = c.size("qk_rope_head_dim"),
          .d_v = c.size("v_head_dim"),
          .query_rank = c.count("q_lora_rank"),
          .bias = c.flag("attention_bias"),
          .cache = cache_of(options)};
}

/// y of the equations.
template <class S> Value<S> latent_attention(const Value<S>& x, const LatentAttention& o) {
  const NormOptions norm{.epsilon = 1e-6};  // whatever the model's ε is
  const Index d = o.d_q + o.d_r, rows = o.heads * (o.d_q + o.d_v);
  const auto positions = [&](const Value<S>& v, Index heads) {
    return o.theta > 0 ? rotary_embedding(v, heads, o.d_r, o.theta, true) : v;
  };
  Value<S> queries = x;
  if (o.query_rank > 0)
    queries = rms_norm(linear(x, "q_a_proj", o.query_rank, o.bias), "q_a_layernorm", norm);
  queries = linear(queries, o.query_rank > 0 ? "q_b_proj" : "q_proj", o.heads * d);
  const auto [q, s] = split_heads<2>(queries, o.heads, {o.d_q, o.d_r});
  const auto [c, r] =
      split<2>(linear(x, "kv_a_proj_with_mqa", o.latent + o.d_r, o.bias), {o.latent, o.d_r});
  const Value<S> latent = rms_norm(c, "kv_a_layernorm", norm);
  const auto by_head = [&](const Value<S>& v, Index first, Index count, bool transposed) {
    return head_products(v, "kv_b_proj", rows, o.latent, {o.heads, first, count}, transposed);
  };
  CacheOptions cache = o.cache;
  cache.scale = 1 / std::sqrt(double(d));
  const Value<S> read =
      attention(join_heads<S>({by_head(q, 0, o.d_q, true), positions(s, o.heads)}, o.heads),
                concatenate<S>({latent, positions(r, 1)}), latent, 1, cache);
  Value<S> y = by_head(read, o.d_q, o.d_v, false);
  if (!o.gate.empty()) y = y * sigmoid(linear(x, o.gate, o.heads));
  return linear(y, o.output, x.rows(), o.bias);
}

}  // namespace fw::models
