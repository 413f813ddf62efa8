#pragma once

#include <fastweights/any_memory/table/gated_deltas.hpp>
#include <fastweights/models/grouped_attention.hpp>
#include <fastweights/models/layer_kinds.hpp>
#include <fastweights/models/rope.hpp>

/// \file
/// OLMo Hybrid: layers of the gated delta rule (Yang, Kautz, Hatamizadeh 2024, arXiv 2412.06464)
/// and of attention as in OLMo 2 (OLMo Team 2025, arXiv 2501.00656), as transformers computes them.
/// Linear layers have norms before their parts, attention layers behind them:
///
///     h = x + delta(rms(x))         y = h + mlp(rms(h))
///     h = x + rms(attention(x))     y = h + rms(mlp(h))
///
/// The linear layer, for a token and a value head:
///
///     q, k, v = silu(conv(W x))     q, k ← l2     α = exp(−exp(A_log) softplus(W_a x + dt_bias))
///     W ← α W + β (v − α W k) kᵀ,   β = 2 σ(W_b x)     o = W q / √d_k
///     y = W_o (w ⊙ rms(o) ⊙ silu(W_g x))

namespace fw::inline FASTWEIGHTS_ABI::models {

/// Sizes of the linear layers. Consecutive value heads share a key head.
struct OlmoDelta {
  /// Heads of keys and of values, and their rows.
  Index key_heads = 1, heads = 1, d_k = 1, d_v = 1;
};

/// The sizes of config.json.
inline OlmoDelta olmo_delta_sizes(const Config& c) {
  const Index n = c.size("num_attention_heads");
  OlmoDelta d{c.size("linear_num_key_heads", n), c.size("linear_num_value_heads", n)};
  if (d.heads % d.key_heads != 0)
    c.fail("linear_num_value_heads", "expected a multiple of linear_num_key_heads");
  const double usual = 0.75 * double(c.size("hidden_size")) / double(d.key_heads);
  d.d_k = c.size("linear_key_head_dim", Index(usual));
  if (d.d_k < 1) c.fail("linear_key_head_dim", "is missing, and 0.75 hidden_size is too small");
  d.d_v = c.size("linear_value_head_dim", 2 * d.d_k);
  return d;
}

/// q, k and v of these rows: silu(conv(W x)). A file that transformers saved has the rows of the
/// three convolutions in `equal` parts, whatever the rows of q, k and v are.
template <class S>
std::array<Value<S>, 3> olmo_activated(const Value<S>& x, const std::array<Index, 3>& rows,
                                       Index kernel, bool equal) {
  const std::array<std::string, 3> names{"q", "k", "v"};
  const auto projected = [&](std::size_t i) { return linear(x, names[i] + "_proj", rows[i]); };
  const auto convolved = [&](const Value<S>& y, std::size_t i) {
    return silu(convolution(y, names[i] + "_conv1d", kernel));
  };
  if (!equal)
    return {convolved(projected(0), 0), convolved(projected(1), 1), convolved(projected(2), 2)};
  const Value<S> all = concatenate<S>({projected(0), projected(1), projected(2)});
  const Index part = (all.rows() + 2) / 3;
  const auto [first, second, third] = split<3>(all, {part, part, all.rows() - 2 * part});
  return split<3>(concatenate<S>({convolved(first, 0), convolved(second, 1), convolved(third, 2)}),
                  rows);
}

/// The linear layers. The epsilon of the output's norm is 1e-5, whatever that of the others is.
template <class S>
Value<S> olmo_gated_delta_net(const Value<S>& x, const Config& c, const ModelOptions& options) {
  const OlmoDelta d = olmo_delta_sizes(c);
  const Index keys = d.key_heads * d.d_k;
  const auto [q, k, v] =
      olmo_activated<S>(x, {keys, keys, d.heads * d.d_v}, c.size("linear_conv_kernel_dim", 4),
                        options.equal_convolutions);
  const Value<S> b = sigmoid(linear(x, "b_proj", d.heads));
  const Value<S> o =
      memory(GatedDeltaRule<S>({d.d_k, d.d_v}),
             {l2(k, d.key_heads), v, c.flag("linear_allow_neg_eigval", true) ? 2.0 * b : b,
              softplus_decay(linear(x, "a_proj", d.heads), d.heads)},
             {unit_queries(q, d.key_heads)});
  const Value<S> gated =
      rms_norm(o, "o_norm", {.epsilon = 1e-5, .groups = d.heads, .shared = true}) *
      silu(linear(x, "g_proj", o.rows()));
  x.builder->note_module(x.builder->path("o_norm"), o, gated);
  return linear(gated, "o_proj", x.rows());
}

/// θ of rotary positions; 0 without positions, as in the published model, whose rope_parameters, or
/// rope_theta in them, are null. Whole heads rotate: the source ignores a partial_rotary_factor.
inline double olmo_rope_theta(const Config& c) {
  const RopeOptions rope(c);
  const bool has_options = c.contains("rope_theta") || c.has("rope_scaling");
  if (rope.has_no_theta() || (c.is_null("rope_parameters") && !has_options)) return 0;
  return rope.theta(10000);
}

/// Attention with norms of all queries, and of all keys, before they are split into heads.
template <class S>
Value<S> olmo_attention(const Value<S>& x, const Config& c, const ModelOptions& options) {
  const GroupedAttention o = grouped_attention_options(c, options);
  const double theta = olmo_rope_theta(c);
  if (theta > 0 && o.d % 2 != 0)
    c.fail(c.has("head_dim") ? "head_dim" : "num_attention_heads",
           "rotary positions need heads of an even size, not " + std::to_string(o.d));
  const auto normed = [&](const std::string& name, Index heads) {
    const Value<S> y = rms_norm(linear(x, name + "_proj", heads * o.d, o.bias), name + "_norm",
                                {.epsilon = c.number("rms_norm_eps", 1e-6)});
    return theta > 0 ? rotary_embedding(y, heads, o.d, theta) : y;
  };
  const Value<S> q = normed("q", o.heads), k = normed("k", o.key_heads);
  const Value<S> v = linear(x, "v_proj", o.key_heads * o.d, o.bias);
  return linear(attention(q, k, v, o.key_heads, o.cache), "o_proj", x.rows(), o.bias);
}

/// The kinds of the layers: attention is every fourth, or the last of fewer.
inline std::vector<std::string> olmo_layer_kinds(const Config& c) {
  const Index layers = layer_count(c);
  return layer_kinds(c, "layer_types", {"linear_attention", "full_attention"}, [&](Index l) {
    return l % 4 == 3 || (layers < 4 && l == layers - 1) ? "full_attention" : "linear_attention";
  });
}

/// The whole model. `prefix` is in front of all names but that of lm_head.
template <class S>
Network<S> olmo_hybrid(const Config& c, const ModelOptions& options = {},
                       const std::string& prefix = "model") {
  c.expect("hidden_act", {"silu", "swish"});
  const NormOptions norm{.epsilon = c.number("rms_norm_eps", 1e-6)};
  const bool tied = is_tied(c, options);
  const auto mlp = [&](const Value<S>& x) { return swiglu(x, c.size("intermediate_size")); };
  const auto linear_layer = [&](const Value<S>& x) {
    const Value<S> h =
        x + module("linear_attn", rms_norm(x, "attention_layer_norm", norm),
                   [&](const Value<S>& y) { return olmo_gated_delta_net(y, c, options); });
    return h + module("mlp", rms_norm(h, "feedforward_layer_norm", norm), mlp);
  };
  const auto attention_layer = [&](const Value<S>& x) {
    const Value<S> y =
        module("self_attn", x, [&](const Value<S>& in) { return olmo_attention(in, c, options); });
    const Value<S> h =
        x +
        rms_norm(y, options.norms_as_linear ? "feedforward_layer_norm" : "post_attention_layernorm",
                 norm);
    return h + rms_norm(module("mlp", h, mlp), "post_feedforward_layernorm", norm);
  };
  const std::vector<std::string> kinds = olmo_layer_kinds(c);
  Builder<S> net;
  net.enter(prefix);
  Value<S> x = token_embedding(net, c, "embed_tokens");
  for (std::size_t l = 0; l < kinds.size(); ++l)
    x = module("layers." + std::to_string(l), x, [&](const Value<S>& in) {
      return kinds[l] == "linear_attention" ? linear_layer(in) : attention_layer(in);
    });
  x = rms_norm(x, "norm", norm);
  return net.build(logits(x, c, tied ? "embed_tokens" : ""));
}

}  // namespace fw::models
