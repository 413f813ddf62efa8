#pragma once

#include <fastweights/any_memory/table/gated.hpp>
#include <fastweights/models/layer_kinds.hpp>
#include <fastweights/models/parts.hpp>
#include <fastweights/models/rope.hpp>
#include <fastweights/networks/operations/constants.hpp>

/// \file
/// MiniMax-Text-01: layers of lightning attention, which is linear attention with a constant decay
/// a head, and of softmax attention, each followed by experts. MiniMax 2025, arXiv 2501.08313,
/// section 2; Qin et al. 2024, arXiv 2401.04658. For a token and head h of layer l:
///
///     q, k, v = silu(W_qkv x)     W ← exp(−s) W + v kᵀ     o = W q
///     y = W_o (w ⊙ rms(o) ⊙ σ(W_g x))
///     s = 2^(−8 (h + 1) / heads) (1 − l / (layers − 1 + c) + c),   c = 1e-5,   h, l from 0
///
/// A layer's residual is what its norm gives: n = rms(x), y = α n + β mixer(n).

namespace fw::inline FASTWEIGHTS_ABI::models {

/// True if a tensor is a table that the published code computes from config.json: not needed.
inline bool is_minimax_table(const std::string& name) {
  for (const char* table : {".slope_rate", ".query_decay", ".key_decay", ".diagonal_decay"})
    if (name.ends_with(table)) return true;
  return false;
}

/// Rows of a head.
inline Index minimax_head_size(const Config& c) {
  return c.has("head_dim") ? c.size("head_dim")
                           : c.size("hidden_size") / c.size("num_attention_heads");
}

/// Lightning attention. The norm is over all heads at once; its ε is fixed.
template <class S>
Value<S> lightning_attention(const Value<S>& x, const Config& c, Index layer, Index layers) {
  const Index heads = c.size("num_attention_heads"), d = minimax_head_size(c);
  const auto [q, k, v] =
      split_heads<3>(silu(linear(x, "qkv_proj", 3 * heads * d)), heads, {d, d, d});
  const double depth = 1 - double(layer) / (double(layers) - 1 + 1e-5) + 1e-5;
  std::vector<double> decays;
  for (Index h = 0; h < heads; ++h)
    decays.push_back(std::exp(-std::exp2(-8.0 * double(h + 1) / double(heads)) * depth));
  const Value<S> o = memory(GatedLinearAttention<S, Dynamic, Dynamic, KeyValueDecay>({d, d}),
                            {k, v, constants(*x.builder, decays)}, {q});
  return linear(
      rms_norm(o, "norm", {.epsilon = 1e-6}) * sigmoid(linear(x, "output_gate", heads * d)),
      "out_proj", x.rows());
}

/// Softmax attention with rotary positions; sliding_window limits how far it looks back.
template <class S>
Value<S> minimax_attention(const Value<S>& x, const Config& c, const ModelOptions& options) {
  const Index heads = c.size("num_attention_heads"), d = minimax_head_size(c);
  const Index key_heads = c.size("num_key_value_heads", heads);
  const double theta = RopeOptions(c).theta_of_whole_heads(1e6);
  const CacheOptions cache =
      cache_of(options, c.has("sliding_window") ? c.size("sliding_window") : 0);
  const Value<S> y =
      attention(rotary_embedding(linear(x, "q_proj", heads * d), heads, d, theta),
                rotary_embedding(linear(x, "k_proj", key_heads * d), key_heads, d, theta),
                linear(x, "v_proj", key_heads * d), key_heads, cache);
  return linear(y, "o_proj", x.rows());
}

/// Experts, with weights of sum 1.
template <class S> Value<S> minimax_experts(const Value<S>& x, const Config& c) {
  const Value<S> routing =
      normalise_routing(top_k_experts(softmax(linear(x, "gate", c.size("num_local_experts"))),
                                      {.experts = c.size("num_experts_per_tok")}));
  return experts(x, routing, c.size("intermediate_size"), {.gate = "w1", .up = "w3", .down = "w2"});
}

/// The whole model. `prefix` is in front of all names but that of lm_head.
template <class S>
Network<S> minimax(const Config& c, const ModelOptions& options = {},
                   const std::string& prefix = "model") {
  c.expect("hidden_act", {"silu"});
  if (c.size("rotary_dim", minimax_head_size(c)) != minimax_head_size(c))
    c.fail("rotary_dim", "expected the size of a head");
  const NormOptions norm{.epsilon = c.number("rms_norm_eps")};
  const std::vector<std::string> types =
      layer_kinds(c, "layer_types", {"linear_attention", "full_attention"},
                  [](Index l) { return l % 2 == 0 ? "full_attention" : "linear_attention"; });
  Builder<S> net;
  net.enter(prefix);
  Value<S> x = token_embedding(net, c, "embed_tokens");
  // α n + β f(n), with the names of α and β
  const auto add = [&](const Value<S>& n, const Value<S>& mixed, const std::string& kind) {
    return c.number(kind + "_alpha_factor", 1) * n + c.number(kind + "_beta_factor", 1) * mixed;
  };
  for (Index l = 0; l < Index(types.size()); ++l)
    x = module("layers." + std::to_string(l), x, [&](const Value<S>& in) {
      const bool is_linear = types[std::size_t(l)] == "linear_attention";
      Value<S> n = rms_norm(in, "input_layernorm", norm);
      const Value<S> mixed = module("self_attn", n, [&](const Value<S>& y) {
        return is_linear ? lightning_attention(y, c, l, Index(types.size()))
                         : minimax_attention(y, c, options);
      });
      n = rms_norm(add(n, mixed, is_linear ? "linear_attn" : "full_attn"),
                   "post_attention_layernorm", norm);
      return add(
          n,
          module("block_sparse_moe", n, [&](const Value<S>& y) { return minimax_experts(y, c); }),
          "mlp");
    });
  x = rms_norm(x, "norm", norm);
  return net.build(logits(x, c, is_tied(c, options) ? "embed_tokens" : ""));
}

}  // namespace fw::models
