#pragma once

#include <fastweights/models/grouped_attention.hpp>
#include <fastweights/models/layer_kinds.hpp>
#include <fastweights/models/mamba2_mixer.hpp>
#include <fastweights/models/rope.hpp>

/// \file
/// Granite 4 hybrids: layers of Mamba-2's mixer, and some of attention, each followed by experts
/// and a feed-forward layer that all tokens share. IBM 2025, https://huggingface.co/ibm-granite.
///
///     h = x + r mixer(rms(x))     y = h + r (experts(rms(h)) + shared_mlp(rms(h)))
///
/// with a number r, and numbers for the embedding, the scale of attention and the logits.

namespace fw::inline FASTWEIGHTS_ABI::models {

/// Attention, without positions unless config.json asks for them.
inline GroupedAttention granite_attention_options(const Config& c, const ModelOptions& options) {
  GroupedAttention o = grouped_attention_options(c, options);
  if (c.text("position_embedding_type") == "rope")
    o.theta = RopeOptions(c).theta_of_whole_heads(10000);
  o.cache.scale = c.number("attention_multiplier", 1);
  if (!(o.cache.scale > 0)) c.fail("attention_multiplier", "expected a positive number");
  return o;
}

/// The softmax is over the scores of the chosen experts: that over all, with sum 1 again.
template <class S> Value<S> granite_experts(const Value<S>& x, const Config& c) {
  const Value<S> routing = normalise_routing(
      top_k_experts(softmax(linear(x, "router.layer", c.size("num_local_experts"))),
                    {.experts = c.size("num_experts_per_tok")}));
  return stacked_experts(x, routing, c.size("intermediate_size"), "input_linear.weight",
                         "output_linear.weight");
}

/// The feed-forward layer that all tokens share.
template <class S> Value<S> granite_mlp(const Value<S>& x, Index hidden) {
  const auto [gate, up] = split<2>(linear(x, "input_linear", 2 * hidden), {hidden, hidden});
  return linear(silu(gate) * up, "output_linear", x.rows());
}

/// The whole model. `prefix` is in front of all names but that of lm_head.
template <class S>
Network<S> granite_hybrid(const Config& c, const ModelOptions& options = {},
                          const std::string& prefix = "model") {
  c.expect("hidden_act", {"silu", "swish"});
  const Mamba2Options mixer = hybrid_mixer(c, c.size("mamba_expand", 2) * c.size("hidden_size"));
  const GroupedAttention attention = granite_attention_options(c, options);
  const NormOptions norm{.epsilon = c.number("rms_norm_eps")};
  const double r = c.number("residual_multiplier", 1), scaling = c.number("logits_scaling", 1);
  if (!(std::abs(scaling) >= 1e-12)) c.fail("logits_scaling", "expected a number, not near 0");
  const std::vector<std::string> types =
      layer_kinds(c, "layer_types", {"linear_attention", "full_attention"},
                  [](Index) { return "linear_attention"; });
  const bool sparse = c.count("num_local_experts") > 0, tied = is_tied(c, options);
  Builder<S> net;
  net.enter(prefix);
  Value<S> x = c.number("embedding_multiplier", 1) * token_embedding(net, c, "embed_tokens");
  for (std::size_t l = 0; l < types.size(); ++l)
    x = module("layers." + std::to_string(l), x, [&](const Value<S>& in) {
      const bool is_full = types[l] == "full_attention";
      const Value<S> mixed =
          module(is_full ? "self_attn" : "mamba", rms_norm(in, "input_layernorm", norm),
                 [&](const Value<S>& y) {
                   return is_full ? grouped_attention(y, attention) : mamba2(y, "", mixer);
                 });
      const Value<S> h = in + r * mixed, y = rms_norm(h, "post_attention_layernorm", norm);
      Value<S> fed = module("shared_mlp", y, [&](const Value<S>& z) {
        return granite_mlp(z, c.size("shared_intermediate_size"));
      });
      if (sparse)
        fed = fed + module("block_sparse_moe", y,
                           [&](const Value<S>& z) { return granite_experts(z, c); });
      return h + r * fed;
    });
  x = rms_norm(x, "norm", norm);
  return net.build((1 / scaling) * logits(x, c, tied ? "embed_tokens" : ""));
}

}  // namespace fw::models
