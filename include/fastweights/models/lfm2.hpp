#pragma once

#include <fastweights/layers/gated_short_convolution.hpp>
#include <fastweights/models/grouped_attention.hpp>
#include <fastweights/models/layer_kinds.hpp>
#include <fastweights/models/rope.hpp>

/// \file
/// LFM2: layers of gated short convolutions, and some of attention with norms of queries and keys,
/// each followed by a feed-forward layer. Liquid AI 2025, arXiv 2511.23404, section 2.
///
///     h = x + mixer(rms(x))     y = h + w2 (silu(w1 rms(h)) ⊙ w3 rms(h))

namespace fw::inline FASTWEIGHTS_ABI::models {

/// The rows between the maps of a feed-forward layer: intermediate_size or, with
/// block_auto_adjust_ff_dim, two thirds of it times a factor, rounded up to a multiple.
inline Index lfm2_hidden(const Config& c) {
  const char* size = "intermediate_size";
  const Index given = c.size(size), adjusted = 2 * given / 3;
  if (!c.flag("block_auto_adjust_ff_dim", true)) return given;
  if (adjusted < 1) c.fail(size, "expected at least 2");
  const char* factor = "block_ffn_dim_multiplier";
  if (c.is_null(factor)) return adjusted;  // published code does not round then
  const double exact = std::trunc(c.number(factor, 1) * double(adjusted));
  const Index scaled = c.computed_size(factor, exact, size), n = c.size("block_multiple_of", 256);
  return (scaled + n - 1) / n * n;
}

/// The kind of each layer: layer_types, or attention where full_attn_idxs says, or everywhere.
inline std::vector<std::string> lfm2_layer_kinds(const Config& c) {
  const std::set<Index> full = layer_numbers(c, "full_attn_idxs", layer_count(c));
  const bool all = !c.has("full_attn_idxs");
  return layer_kinds(c, "layer_types", {"conv", "full_attention"},
                     [&](Index l) { return all || full.contains(l) ? "full_attention" : "conv"; });
}

/// Attention: its sizes, and positions on whole heads.
inline GroupedAttention lfm2_attention_options(const Config& c, const ModelOptions& options) {
  GroupedAttention o = grouped_attention_options(c, options);
  o.theta = RopeOptions(c).theta_of_whole_heads(1e6);
  if (c.has("theta") && c.number("theta") != o.theta)
    c.fail("theta", "expected that of rope_theta");
  return o;
}

/// Attention with a norm of every query and key before its position.
template <class S>
Value<S> lfm2_attention(const Value<S>& x, const GroupedAttention& o, double epsilon) {
  const auto positions = [&](const Value<S>& v, const std::string& norm, Index n) {
    return rotate_part(rms_norm(v, norm, {.epsilon = epsilon, .groups = n, .shared = true}), n, 1,
                       o.theta);
  };
  const Value<S> y =
      attention(positions(linear(x, "q_proj", o.heads * o.d), "q_layernorm", o.heads),
                positions(linear(x, "k_proj", o.key_heads * o.d), "k_layernorm", o.key_heads),
                linear(x, "v_proj", o.key_heads * o.d), o.key_heads, o.cache);
  return linear(y, "out_proj", x.rows());
}

/// The whole model. `prefix` is in front of all names but that of lm_head.
template <class S>
Network<S> lfm2(const Config& c, const ModelOptions& options = {},
                const std::string& prefix = "model") {
  const ShortConvolution convolution{c.size("conv_L_cache", 3), c.flag("conv_bias")};
  const GroupedAttention o = lfm2_attention_options(c, options);
  const NormOptions norm{.epsilon = c.number("norm_eps", 1e-5)};
  const std::vector<std::string> kinds = lfm2_layer_kinds(c);
  const Index hidden = lfm2_hidden(c);
  const bool tied = is_tied(c, options, true);
  Builder<S> net;
  net.enter(prefix);
  Value<S> x = token_embedding(net, c, "embed_tokens");
  for (std::size_t l = 0; l < kinds.size(); ++l)
    x = module("layers." + std::to_string(l), x, [&](const Value<S>& in) {
      const Value<S> normed = rms_norm(in, "operator_norm", norm);
      const Value<S> h =
          in + (kinds[l] == "conv" ? gated_short_convolution(normed, "conv", convolution)
                                   : module("self_attn", normed, [&](const Value<S>& y) {
                                       return lfm2_attention(y, o, norm.epsilon);
                                     }));
      return h + module("feed_forward", rms_norm(h, "ffn_norm", norm), [&](const Value<S>& y) {
               return swiglu(y, hidden, ExpertNames{.gate = "w1", .up = "w3", .down = "w2"});
             });
    });
  x = rms_norm(x, "embedding_norm", norm);
  return net.build(logits(x, c, tied ? "embed_tokens" : ""));
}

}  // namespace fw::models
