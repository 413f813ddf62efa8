#pragma once

#include <fastweights/models/grouped_attention.hpp>
#include <fastweights/models/layer_kinds.hpp>
#include <fastweights/models/mamba2_mixer.hpp>
#include <fastweights/models/rope.hpp>

/// \file
/// Bamba: layers of Mamba-2's mixer, and some of attention with rotary positions on a part of each
/// head, each followed by a gated feed-forward layer. IBM, Princeton, CMU, UIUC 2024,
/// https://huggingface.co/blog/bamba.
///
///     h = x + mixer(rms(x))     y = h + feed_forward(rms(h))

namespace fw::inline FASTWEIGHTS_ABI::models {

/// The options of its attention layers.
inline GroupedAttention bamba_attention_options(const Config& c, const ModelOptions& options) {
  GroupedAttention o = grouped_attention_options(c, options);
  const RopeOptions rope(c);
  o.theta = rope.theta(10000);
  o.rotated = rope.nested_part(0.5);
  return o;
}

/// The whole model. `prefix` is in front of all names but that of lm_head.
template <class S>
Network<S> bamba(const Config& c, const ModelOptions& options = {},
                 const std::string& prefix = "model") {
  c.expect("hidden_act", {"silu", "swish"});
  const Index d = c.size("hidden_size"), hidden = c.size("intermediate_size");
  const Mamba2Options mixer = hybrid_mixer(c, c.size("mamba_expand", 2) * d);
  const GroupedAttention attention = bamba_attention_options(c, options);
  const NormOptions norm{.epsilon = c.number("rms_norm_eps")};
  const std::set<Index> full = layer_numbers(c, "attn_layer_indices", layer_count(c));
  const bool tied = is_tied(c, options);
  Builder<S> net;
  net.enter(prefix);
  Value<S> x = token_embedding(net, c, "embed_tokens");
  for (Index l = 0; l < layer_count(c); ++l)
    x = module("layers." + std::to_string(l), x, [&](const Value<S>& in) {
      const bool is_full = full.contains(l);
      const Value<S> h =
          in + module(is_full ? "self_attn" : "mamba", rms_norm(in, "input_layernorm", norm),
                      [&](const Value<S>& y) {
                        return is_full ? grouped_attention(y, attention) : mamba2(y, "", mixer);
                      });
      return h +
             module("feed_forward", rms_norm(h, "pre_ff_layernorm", norm),
                    [&](const Value<S>& y) { return swiglu(y, hidden, {}, c.flag("mlp_bias")); });
    });
  x = rms_norm(x, "final_layernorm", norm);
  return net.build(logits(x, c, tied ? "embed_tokens" : ""));
}

}  // namespace fw::models
