#pragma once

#include <fastweights/models/fla/grouped_queries.hpp>
#include <fastweights/models/layer_kinds.hpp>
#include <fastweights/models/rwkv7_time_mix.hpp>

/// \file
/// RWKV-7 as a language model, under the names of flash-linear-attention: Peng et al. 2025, arXiv
/// 2503.14456, section 4. For every layer:
///
///     h = x + time_mix(norm(x))     y = h + channel_mix(norm(h))
///     channel_mix(x_t) = W_v relu(W_k (x_t + (x_{t−1} − x_t) ⊙ x_k))²
///
/// with layer norms; x of the first layer has a norm of its own before.

namespace fw::inline FASTWEIGHTS_ABI::models {

/// The values' rows, which are the same in all layers: value_dim is a size or a list of sizes.
inline Index rwkv7_values(const Config& c) {
  const Index d = c.size("hidden_size");
  if (!c.is_list("value_dim")) return c.size("value_dim", d);
  const std::vector<Index> sizes = c.sizes("value_dim");
  if (Index(sizes.size()) != layer_count(c))
    c.fail("value_dim", "expected one for each of num_hidden_layers");
  for (const Index each : sizes)
    if (each != sizes[0]) c.fail("value_dim", "expected the same for all layers");
  return sizes[0];
}

/// The options of a model's layers.
inline Rwkv7Options rwkv7_options(const Config& c) {
  c.expect("attn_mode", {"chunk", "fused_recurrent"});
  const Index d = c.size("hidden_size"), values = rwkv7_values(c);
  if (values < d || values % d != 0) c.fail("value_dim", "expected a multiple of hidden_size");
  Rwkv7Options o = rwkv7_heads(c, "value_dim", values), usual;
  usual.decay_rank = usual.a_rank = 64, usual.v_rank = 16, usual.gate_rank = 128;
  set_rwkv7_ranks(o, c, usual);
  o.epsilon = double(o.d_k) * c.number("norm_eps", 1e-5);
  o.smooth_unit = c.flag("fuse_norm", true);
  return o;
}

/// intermediate_size, or hidden_ratio times hidden_size, rounded up to a multiple of 32.
inline Index rwkv7_intermediate_size(const Config& c) {
  if (c.has("intermediate_size")) return c.size("intermediate_size");
  const double exact = std::trunc(c.number("hidden_ratio", 4) * double(c.size("hidden_size")));
  return 32 * ((c.computed_size("hidden_ratio", exact, "hidden_size") + 31) / 32);
}

/// The feed-forward layer, which mixes x with the token before.
template <class S> Value<S> rwkv7_channel_mix(const Value<S>& x, const Config& c) {
  const Initialiser draw = [](double uniform, double) { return 1 - uniform; };
  const Value<S> mixed = x + (token_shift(x) - x) * parameter(*x.builder, "x_k", x.rows(), draw);
  const Value<S> hidden = linear(mixed, "key", rwkv7_intermediate_size(c));
  return linear(activation(hidden, fla::activation_named(c, "hidden_act", "sqrelu")), "value",
                x.rows());
}

/// The whole model. `prefix` is in front of all names but that of lm_head.
template <class S>
Network<S> rwkv7(const Config& c, const ModelOptions& options = {},
                 const std::string& prefix = "model") {
  if (c.has("attn")) c.fail("attn", "supported is null: layers of attention have no v_first");
  const Rwkv7Options o = rwkv7_options(c);
  const NormOptions norm{.epsilon = c.number("norm_eps", 1e-5), .bias = c.flag("norm_bias", true)};
  const bool tied = is_tied(c, options);
  Builder<S> net;
  net.enter(prefix);
  Value<S> x = token_embedding(net, c, "embeddings");
  std::optional<Value<S>> v_first;
  for (Index l = 0; l < layer_count(c); ++l)
    x = module("layers." + std::to_string(l), x, [&](const Value<S>& in) {
      const bool normed = l == 0 && c.flag("norm_first", true);
      const Value<S> before = normed ? layer_norm(in, "pre_norm", norm) : in;
      const Value<S> h =
          before + networks::rwkv7(layer_norm(before, "attn_norm", norm), "attn", o, v_first);
      return h + module("ffn", layer_norm(h, "ffn_norm", norm),
                        [&](const Value<S>& y) { return rwkv7_channel_mix(y, c); });
    });
  x = layer_norm(x, "norm", norm);
  return net.build(logits(x, c, tied ? "embeddings" : ""));
}

}  // namespace fw::models
