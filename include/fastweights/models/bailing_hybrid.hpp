#pragma once

#include <fastweights/layers/kimi_delta_attention.hpp>
#include <fastweights/models/latent_attention.hpp>
#include <fastweights/models/layer_kinds.hpp>
#include <fastweights/models/rope.hpp>
#include <fastweights/models/sigmoid_routing.hpp>

/// \file
/// Ling and Ring 3 (inclusionAI 2026, model_type bailing_hybrid): layers of Kimi delta attention,
/// whose decay has a lower bound (Kimi Team 2025, arXiv 2510.26692), and some of latent attention
/// with a gate for every head (DeepSeek-AI 2024, arXiv 2405.04434), with dense or sparse
/// feed-forward layers.
///
///     h = x + mixer(rms(x))     y = h + feed_forward(rms(h))

namespace fw::inline FASTWEIGHTS_ABI::models {

/// Throws for options of the published config.json that are not implemented.
inline void check_bailing_hybrid(const Config& c) {
  c.expect("hidden_act", {"silu"});
  c.expect("linear_attention", {"kda"});
  c.expect("score_function", {"sigmoid"});
  c.expect("scoring_func", {"sigmoid"});
  c.expect("topk_method", {"noaux_tc"});
  c.expect("gated_attention_proj_granularity_type", {"head_wise"});
  for (const char* name : {"no_kda_lora", "rope_interleave", "moe_router_enable_expert_bias"})
    c.expect_flag(name, true);
  for (const char* name : {"use_kda_lora", "use_qkv_bias", "use_bias", "use_mla_nope", "use_nGPT",
                           "value_norm", "up_proj_norm", "scale_router_input"})
    c.expect_flag(name, false);
  for (const char* name : {"expert_swiglu_limit_list", "share_expert_swiglu_limit_list"})
    if (c.has(name))
      for (const double limit : c.numbers(name))
        if (limit != 0) c.fail(name, "supported is 0");
  const Index heads = c.size("num_attention_heads");
  if (c.size("num_key_value_heads", heads) != heads)
    c.fail("num_key_value_heads", "expected num_attention_heads");
  const std::string shared = "moe_shared_expert_intermediate_size";
  if (c.has(shared) && c.size(shared) != c.size("moe_intermediate_size"))
    c.fail(shared, "expected moe_intermediate_size");
}

/// Delta attention. Sizes that are not given by themselves are those of latent attention.
inline KimiDeltaAttentionOptions bailing_delta_options(const Config& c) {
  const Index heads = c.size("linear_num_heads", c.size("num_attention_heads"));
  const Index d = c.has("linear_head_dim") ? c.size("linear_head_dim") : c.size("head_dim");
  KimiDeltaAttentionOptions options{
      .key_heads = heads,
      .heads = heads,
      .d_k = d,
      .d_v = d,
      .kernel = c.size("linear_conv_kernel_dim", c.size("short_conv_kernel_size", 4)),
      .epsilon = c.number("rms_norm_eps"),
      .forget = {.out = "f_proj"},
      .gate = {.out = "g_proj"},
      .output = "dense"};
  if (c.flag("kda_safe_gate", true)) options.lower_bound = c.number("kda_lower_bound", -5);
  if (options.lower_bound > 0) c.fail("kda_lower_bound", "expected at most 0");
  return options;
}

/// Latent attention. The queries have a projection of low rank in the publisher's own files and in
/// those of transformers from 5.24 on. Older ones carry q_lora_rank, but it means nothing there.
inline LatentAttention bailing_latent_options(const Config& c, const ModelOptions& options) {
  const std::vector<std::string> classes =
      c.has("architectures") ? c.texts("architectures") : std::vector<std::string>();
  const bool is_own =
      std::find(classes.begin(), classes.end(), "BailingMoeV3ForCausalLM") != classes.end();
  LatentAttention latent = latent_attention_options(c, options);
  if (!is_own && !options.low_rank_queries) latent.query_rank = 0;
  latent.theta = RopeOptions(c).theta(6e6);  // partial_rotary_factor is not read
  latent.gate = "g_proj";
  latent.output = "dense";
  return latent;
}

/// The whole model. `prefix` is in front of all names but that of lm_head, whose weight is its own
/// whatever tie_word_embeddings says.
template <class S>
Network<S> bailing_hybrid(const Config& c, const ModelOptions& options = {},
                          const std::string& prefix = "model") {
  check_bailing_hybrid(c);
  const NormOptions norm{.epsilon = c.number("rms_norm_eps")};
  const std::vector<std::string> types =
      layer_kinds(c, "layer_types", {"linear_attention", "full_attention"}, [&](Index l) {
        if (c.size("num_hidden_layers") % c.size("layer_group_size") != 0)
          c.fail("layer_group_size", "expected a divisor of num_hidden_layers, or layer_types");
        return (l + 1) % c.size("layer_group_size") == 0 ? "full_attention" : "linear_attention";
      });
  const std::vector<std::string> feed_forward = feed_forward_kinds(c, 2);
  Builder<S> net;
  net.enter(prefix);
  Value<S> x = token_embedding(net, c, "word_embeddings");
  for (std::size_t l = 0; l < types.size(); ++l)
    x = module("layers." + std::to_string(l), x, [&](const Value<S>& in) {
      const Value<S> h =
          in + module("attention", rms_norm(in, "input_layernorm", norm), [&](const Value<S>& y) {
            return types[l] == "linear_attention"
                       ? kimi_delta_attention(y, "", bailing_delta_options(c))
                       : latent_attention(y, bailing_latent_options(c, options));
          });
      return h +
             module("mlp", rms_norm(h, "post_attention_layernorm", norm), [&](const Value<S>& y) {
               return feed_forward[l] == "dense" ? swiglu(y, c.size("intermediate_size"))
                                                 : routed_and_shared_experts(y, c, "expert_bias");
             });
    });
  x = rms_norm(x, "norm", norm);
  return net.build(logits(x, c));
}

}  // namespace fw::models
