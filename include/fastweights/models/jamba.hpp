#pragma once

#include <fastweights/models/grouped_attention.hpp>
#include <fastweights/models/layer_kinds.hpp>
#include <fastweights/models/mamba.hpp>

/// \file
/// Jamba: layers of Mamba's mixer, whose δ, k and q have norms, and some of attention without
/// positions, each followed by a feed-forward layer or experts. Lieber et al. 2024, arXiv
/// 2403.19887, section 3; the norms: section 6.4.
///
///     h = x + mixer(rms(x))     y = h + feed_forward(rms(h))

namespace fw::inline FASTWEIGHTS_ABI::models {

/// Layers that are of another kind: those with l mod period = offset.
struct JambaLayers {
  Index period, offset;  ///< as published

  /// The layers of attention or experts, as `kind` says: attn_layer or expert_layer.
  JambaLayers(const Config& c, const std::string& kind, Index usual_period, Index usual_offset)
      : period(c.size(kind + "_period", usual_period)), offset(usual_offset) {
    if (c.has(kind + "_offset")) offset = c.count(kind + "_offset");
    if (offset >= period) c.fail(kind + "_offset", "expected less than " + kind + "_period");
  }
  /// True if layer l is one.
  bool contain(Index l) const { return l % period == offset; }
};

/// The options of the mixers of Mamba.
inline MambaOptions jamba_mixer(const Config& c) {
  const double exact = double(c.size("mamba_expand", 2)) * double(c.size("hidden_size"));
  return {.channels = c.computed_size("mamba_expand", exact, "hidden_size"),
          .d_k = c.size("mamba_d_state", 16),
          .rank = mamba_rank(c, "mamba_dt_rank"),
          .kernel = c.size("mamba_d_conv", 4),
          .bias = c.flag("mamba_proj_bias"),
          .conv_bias = c.flag("mamba_conv_bias", true),
          .norms = MambaNorms::weighted,
          .epsilon = c.number("rms_norm_eps", 1e-6)};
}

/// The number of experts of a sparse layer; a single one is a feed-forward layer.
inline Index jamba_experts(const Config& c) { return c.size("num_experts", 16); }

/// A feed-forward layer, or experts, whose weights are probabilities over all experts.
template <class S> Value<S> jamba_feed_forward(const Value<S>& x, const Config& c, bool sparse) {
  const Index hidden = c.size("intermediate_size");
  if (!sparse) return swiglu(x, hidden);
  return experts(x,
                 top_k_experts(softmax(linear(x, "router", jamba_experts(c))),
                               {.experts = c.size("num_experts_per_tok", 2)}),
                 hidden);
}

/// The whole model. `prefix` is in front of all names but that of lm_head.
template <class S>
Network<S> jamba(const Config& c, const ModelOptions& options = {},
                 const std::string& prefix = "model") {
  c.expect("hidden_act", {"silu", "swish"});
  const MambaOptions mixer = jamba_mixer(c);
  check_states(c, "mamba_d_state", double(mixer.channels) * double(mixer.d_k));
  GroupedAttention attention = grouped_attention_options(c, options);
  attention.bias = false;  // published code reads neither attention_bias nor sliding_window
  const JambaLayers of_attention(c, "attn_layer", 8, 4), of_experts(c, "expert_layer", 2, 1);
  const NormOptions norm{.epsilon = mixer.epsilon};
  Builder<S> net;
  net.enter(prefix);
  Value<S> x = token_embedding(net, c, "embed_tokens");
  for (Index l = 0; l < layer_count(c); ++l)
    x = module("layers." + std::to_string(l), x, [&](const Value<S>& in) {
      const Value<S> normed = rms_norm(in, "input_layernorm", norm);
      const Value<S> h =
          in + (of_attention.contain(l)
                    ? module("self_attn", normed,
                             [&](const Value<S>& y) { return grouped_attention(y, attention); })
                    : networks::mamba(normed, "mamba", mixer));
      const bool sparse = of_experts.contain(l) && jamba_experts(c) > 1;
      return h + module("feed_forward", rms_norm(h, "pre_ff_layernorm", norm),
                        [&](const Value<S>& y) { return jamba_feed_forward(y, c, sparse); });
    });
  x = rms_norm(x, "final_layernorm", norm);
  return net.build(logits(x, c, is_tied(c, options) ? "embed_tokens" : ""));
}

}  // namespace fw::models
