#pragma once

#include <fastweights/layers/kimi_delta_attention.hpp>
#include <fastweights/models/latent_attention.hpp>
#include <fastweights/models/layer_kinds.hpp>
#include <fastweights/models/sigmoid_routing.hpp>

/// \file
/// Kimi Linear: layers of Kimi delta attention, and some of latent attention without positions,
/// with dense or sparse feed-forward layers. Kimi Team 2025, arXiv 2510.26692, section 4.
///
///     h = x + mixer(rms(x))     y = h + feed_forward(rms(h))

namespace fw::inline FASTWEIGHTS_ABI::models {

/// Throws for options of the published config.json that are not implemented.
inline void check_kimi_linear(const Config& c) {
  c.expect("hidden_act", {"silu"});
  c.expect("moe_router_activation_func", {"sigmoid"});
  c.expect_flag("mla_use_nope", true);
  c.expect_flag("use_grouped_topk", true);
  if (c.size("moe_layer_freq", 1) != 1) c.fail("moe_layer_freq", "supported is 1");
  const Index heads = c.size("num_attention_heads");
  if (c.size("num_key_value_heads", heads) != heads)
    c.fail("num_key_value_heads", "expected num_attention_heads");
}

/// Delta attention. The sizes are in linear_attn_config, or beside it in later files.
inline KimiDeltaAttentionOptions kimi_delta_options(const Config& c) {
  const Config own = c.part("linear_attn_config");
  const auto size = [&](const std::string& name, const std::string& later) {
    return own.has(name) ? own.size(name) : c.size(later);
  };
  const Index heads = size("num_heads", "linear_num_heads"),
              d = size("head_dim", "linear_head_dim");
  return {.key_heads = heads,
          .heads = heads,
          .d_k = d,
          .d_v = d,
          .kernel = size("short_conv_kernel_size", "linear_conv_kernel_dim"),
          .epsilon = c.number("rms_norm_eps"),
          .forget = {"f_a_proj", "f_b_proj", d},
          .gate = {"g_a_proj", "g_b_proj", d}};
}

/// The layers of latent attention: linear_attn_config counts them from 1, if it has both lists.
inline std::vector<std::string> kimi_layer_types(const Config& c) {
  const Config own = c.part("linear_attn_config");
  const char *of_full = "full_attn_layers", *of_delta = "kda_layers";
  const std::set<Index> full = layer_numbers(own, of_full, layer_count(c)),
                        delta = layer_numbers(own, of_delta, layer_count(c));
  const bool listed = own.has(of_full) && own.has(of_delta);
  return layer_kinds(c, "layer_types", {"linear_attention", "full_attention"}, [&](Index l) {
    if (listed && full.contains(l + 1) == delta.contains(l + 1))
      own.fail(of_delta, "expected each layer there or in full_attn_layers");
    const bool is_full = listed ? full.contains(l + 1) : l > 0 && l % 4 == 0;
    return is_full ? "full_attention" : "linear_attention";
  });
}

/// The whole model. `prefix` is in front of all names but that of lm_head, whose weight is its own
/// whatever tie_word_embeddings says.
template <class S>
Network<S> kimi_linear(const Config& c, const ModelOptions& options = {},
                       const std::string& prefix = "model") {
  check_kimi_linear(c);
  const NormOptions norm{.epsilon = c.number("rms_norm_eps")};
  const std::vector<std::string> types = kimi_layer_types(c);
  const std::vector<std::string> feed_forward = feed_forward_kinds(c, 1);
  Builder<S> net;
  net.enter(prefix);
  Value<S> x = token_embedding(net, c, "embed_tokens");
  for (std::size_t l = 0; l < types.size(); ++l)
    x = module("layers." + std::to_string(l), x, [&](const Value<S>& in) {
      const Value<S> h =
          in + module("self_attn", rms_norm(in, "input_layernorm", norm), [&](const Value<S>& y) {
            return types[l] == "linear_attention"
                       ? kimi_delta_attention(y, "", kimi_delta_options(c))
                       : latent_attention(y, latent_attention_options(c, options));
          });
      const Value<S> y = rms_norm(h, "post_attention_layernorm", norm);
      if (feed_forward[l] == "dense")
        return h +
               module(options.dense_as_sparse ? "block_sparse_moe" : "mlp", y,
                      [&](const Value<S>& z) { return swiglu(z, c.size("intermediate_size")); });
      return h + module("block_sparse_moe", y, [&](const Value<S>& z) {
               return routed_and_shared_experts(z, c, "e_score_correction_bias",
                                                {.gate = "w1", .up = "w3", .down = "w2"});
             });
    });
  x = rms_norm(x, "norm", norm);
  return net.build(logits(x, c));
}

}  // namespace fw::models
