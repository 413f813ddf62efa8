#pragma once

#include <fastweights/any_memory/table/gated_deltas.hpp>
#include <fastweights/models/grouped_attention.hpp>
#include <fastweights/models/layer_kinds.hpp>
#include <fastweights/models/rope.hpp>

/// \file
/// Qwen3-Next and Qwen3.5 (text): layers of the gated delta rule (Yang, Kautz, Hatamizadeh 2024,
/// arXiv 2412.06464) and of gated attention, with dense or sparse feed-forward layers. For a token
/// and a value head:
///
///     q, k, v = silu(conv(W_qkv x))     q, k ← l2
///     α = exp(−exp(A_log) softplus(W_a x + dt_bias))     β = σ(W_b x)
///     W ← α W + β (v − α W k) kᵀ     o = W q / √d_k
///     y = W_o (w ⊙ rms(o) ⊙ silu(W_z x))
///
/// W is the memory; each W_… is a weight.

namespace fw::inline FASTWEIGHTS_ABI::models {

/// ε of all norms.
inline double qwen_epsilon(const Config& c) { return c.number("rms_norm_eps", 1e-6); }

/// The linear layers: networks::gated_delta_net with names and fused projections of their own.
/// The projections of Qwen3-Next have their rows in the order of key heads.
template <class S>
Value<S> qwen_gated_delta_net(const Value<S>& x, const Config& c, bool fused_by_head) {
  Builder<S>& net = *x.builder;
  const Index key_heads = c.size("linear_num_key_heads"), d_k = c.size("linear_key_head_dim");
  const Index heads = c.size("linear_num_value_heads"), d_v = c.size("linear_value_head_dim");
  if (heads % key_heads != 0)
    c.fail("linear_num_value_heads", "expected a multiple of linear_num_key_heads");
  const Index n = heads / key_heads, keys = key_heads * d_k, values = heads * d_v;
  Value<S> qkv, z, b, a;
  if (fused_by_head) {
    const auto parts = split_heads<4>(linear(x, "in_proj_qkvz", 2 * keys + 2 * values), key_heads,
                                      {d_k, d_k, n * d_v, n * d_v});
    const auto gates = split_heads<2>(linear(x, "in_proj_ba", 2 * heads), key_heads, {n, n});
    qkv = concatenate<S>({parts[0], parts[1], parts[2]});
    z = parts[3], b = gates[0], a = gates[1];
  } else {
    qkv = linear(x, "in_proj_qkv", 2 * keys + values);
    z = linear(x, "in_proj_z", values);
    b = linear(x, "in_proj_b", heads);
    a = linear(x, "in_proj_a", heads);
  }
  const auto [q, k, v] = split<3>(
      silu(convolution(qkv, "conv1d", c.size("linear_conv_kernel_dim"))), {keys, keys, values});
  const Value<S> o = memory(GatedDeltaRule<S>({d_k, d_v}),
                            {l2(k, key_heads), v, sigmoid(b), softplus_decay(a, heads)},
                            {unit_queries(q, key_heads)});
  const Value<S> normed =
      rms_norm(o, "norm", {.epsilon = qwen_epsilon(c), .groups = heads, .shared = true});
  const Value<S> gated = normed * silu(z);
  net.note_module(net.path("norm"), o, gated);
  return linear(gated, "out_proj", x.rows());
}

/// Attention with norms of queries and keys, partial rotary positions and an output gate.
template <class S>
Value<S> qwen_attention(const Value<S>& x, const Config& c, const ModelOptions& options) {
  const GroupedAttention o = grouped_attention_options(c, options);
  const RopeOptions rope(c);
  const double theta = rope.theta(10000), part = rope.part(0.25);
  const auto positions = [&](const Value<S>& v, const std::string& norm, Index n) {
    const NormOptions unit{
        .epsilon = qwen_epsilon(c), .groups = n, .shared = true, .plus_one = true};
    return rotate_part(rms_norm(v, norm, unit), n, part, theta);
  };
  const auto [q, gate] =
      split_heads<2>(linear(x, "q_proj", 2 * o.heads * o.d, o.bias), o.heads, {o.d, o.d});
  const Value<S> y =
      attention(positions(q, "q_norm", o.heads),
                positions(linear(x, "k_proj", o.key_heads * o.d, o.bias), "k_norm", o.key_heads),
                linear(x, "v_proj", o.key_heads * o.d, o.bias), o.key_heads, o.cache);
  return linear(y * sigmoid(gate), "o_proj", x.rows(), o.bias);
}

/// Experts by softmax routing, and one that all tokens share behind a gate.
template <class S>
Value<S> qwen_experts(const Value<S>& x, const Config& c, const ModelOptions& options) {
  Value<S> routing = top_k_experts(softmax(linear(x, "gate", c.size("num_experts"))),
                                   {.experts = c.size("num_experts_per_tok")});
  if (c.flag("norm_topk_prob", true)) routing = normalise_routing(routing);
  const Value<S> shared = module("shared_expert", x, [&](const Value<S>& in) {
    return swiglu(in, c.size("shared_expert_intermediate_size"));
  });
  const Index hidden = c.size("moe_intermediate_size");
  const Value<S> chosen =
      options.stacked_experts
          ? stacked_experts(x, routing, hidden, "experts.gate_up_proj", "experts.down_proj")
          : experts(x, routing, hidden);
  return chosen + shared * sigmoid(linear(x, "shared_expert_gate", 1));
}

/// True if each feed-forward layer is sparse, as decoder_sparse_step and mlp_only_layers say.
inline std::vector<bool> qwen_sparse_layers(const Config& c, Index layers) {
  const std::set<Index> dense = layer_numbers(c, "mlp_only_layers", layers);
  std::vector<bool> sparse;
  for (Index l = 0; l < layers; ++l)
    sparse.push_back(c.count("num_experts") > 0 &&
                     (l + 1) % c.size("decoder_sparse_step", 1) == 0 && !dense.contains(l));
  return sparse;
}

/// A feed-forward layer.
template <class S>
Value<S> qwen_feed_forward(const Value<S>& x, const Config& c, const ModelOptions& options,
                           bool sparse) {
  return sparse ? qwen_experts(x, c, options) : swiglu(x, c.size("intermediate_size"));
}

/// The whole model. `prefix` is in front of all names but that of lm_head.
template <class S>
Network<S> qwen3_next(const Config& c, const ModelOptions& options = {},
                      const std::string& prefix = "model") {
  c.expect("hidden_act", {"silu"});
  const bool fused = c.text("model_type") == "qwen3_next", tied = is_tied(c, options);
  const NormOptions norm{.epsilon = qwen_epsilon(c), .plus_one = true};
  const Index interval = c.size("full_attention_interval", 4);
  const auto kinds = layer_kinds(
      c, "layer_types", {"linear_attention", "full_attention"},
      [&](Index l) { return (l + 1) % interval ? "linear_attention" : "full_attention"; });
  const std::vector<bool> sparse = qwen_sparse_layers(c, Index(kinds.size()));
  Builder<S> net;
  net.enter(prefix);
  Value<S> x = token_embedding(net, c, "embed_tokens");
  for (Index l = 0; l < Index(kinds.size()); ++l)
    x = module("layers." + std::to_string(l), x, [&](const Value<S>& in) {
      const bool recurrent = kinds[std::size_t(l)] == "linear_attention";
      const Value<S> h = in + module(recurrent ? "linear_attn" : "self_attn",
                                     rms_norm(in, "input_layernorm", norm), [&](const Value<S>& y) {
                                       return recurrent ? qwen_gated_delta_net(y, c, fused)
                                                        : qwen_attention(y, c, options);
                                     });
      return h +
             module("mlp", rms_norm(h, "post_attention_layernorm", norm), [&](const Value<S>& y) {
               return qwen_feed_forward(y, c, options, sparse[std::size_t(l)]);
             });
    });
  x = rms_norm(x, "norm", norm);
  return net.build(logits(x, c, tied ? "embed_tokens" : ""));
}

}  // namespace fw::models
