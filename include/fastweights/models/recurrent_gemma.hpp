#pragma once

#include <fastweights/layers/rg_lru.hpp>
#include <fastweights/models/grouped_attention.hpp>
#include <fastweights/models/layer_kinds.hpp>
#include <fastweights/models/rope.hpp>

/// \file
/// RecurrentGemma: recurrent blocks of Griffin, and some of attention to a window, each followed by
/// a feed-forward layer. Botev et al. 2024, arXiv 2404.07839; De et al. 2024, arXiv 2402.19427.
///
///     h = x + temporal(rms(x))     y = h + down(gelu(gate rms(h)) ⊙ up rms(h))
///
/// The embedding is multiplied by √d, rounded to bfloat16, and the logits are c tanh(logits / c).
/// The gelu is its tanh form.

namespace fw::inline FASTWEIGHTS_ABI::models {

/// The kinds of the layers: block_types again and again.
inline std::vector<std::string> recurrent_gemma_kinds(const Config& c) {
  const char* name = "block_types";
  std::vector<std::string> block = {"recurrent", "recurrent", "attention"};
  if (c.has(name)) block = c.texts(name);
  for (const std::string& kind : block)
    if (kind != "recurrent" && kind != "attention")
      c.fail(name, kind.substr(0, 40) + " is not supported");
  const std::size_t layers = std::size_t(layer_count(c));
  if (block.empty() || layers > 100 * block.size())
    c.fail(name, "expected at least a hundredth of num_hidden_layers");
  std::vector<std::string> kinds;
  for (std::size_t l = 0; l < layers; ++l) kinds.push_back(block[l % block.size()]);
  return kinds;
}

/// The recurrent blocks.
inline RgLruOptions recurrent_gemma_block(const Config& c) {
  const RgLruOptions o{.channels = c.size("lru_width", c.size("hidden_size")),
                       .heads = c.size("num_attention_heads"),
                       .kernel = c.size("conv1d_width", 4)};
  if (o.channels % o.heads != 0) c.fail("lru_width", "expected a multiple of num_attention_heads");
  return o;
}

/// Attention to attention_window_size tokens. Only the output has a bias, unless attention_bias.
inline GroupedAttention recurrent_gemma_attention(const Config& c, const ModelOptions& options) {
  GroupedAttention o = grouped_attention_options(c, options);
  const RopeOptions rope(c);
  o.theta = rope.theta(10000);
  o.rotated = rope.part(0.5);
  o.output_bias = true;
  o.cache = cache_of(options, c.size("attention_window_size", 2048));
  return o;
}

/// The feed-forward layer; intermediate_size counts gate and up.
template <class S> Value<S> recurrent_gemma_mlp(const Value<S>& x, const Config& c) {
  const Index hidden = c.size("intermediate_size") / 2;
  const Value<S> gate = gelu_tanh(linear(x, "gate_proj", hidden, true));
  return linear(gate * linear(x, "up_proj", hidden, true), "down_proj", x.rows(), true);
}

/// The whole model. `prefix` is in front of all names but that of lm_head.
template <class S>
Network<S> recurrent_gemma(const Config& c, const ModelOptions& options = {},
                           const std::string& prefix = "model") {
  c.expect("hidden_activation", {"gelu_pytorch_tanh"});
  const std::vector<std::string> kinds = recurrent_gemma_kinds(c);
  const RgLruOptions block = recurrent_gemma_block(c);
  const GroupedAttention attention = recurrent_gemma_attention(c, options);
  const NormOptions norm{.epsilon = c.number("rms_norm_eps", 1e-6), .plus_one = true};
  const double cap = c.number("logits_soft_cap", 30);
  if (!(cap >= 1e-6)) c.fail("logits_soft_cap", "expected a number above 0");
  const Eigen::bfloat16 scale(float(std::sqrt(double(c.size("hidden_size")))));
  Builder<S> net;
  net.enter(prefix);
  Value<S> x = double(float(scale)) * token_embedding(net, c, "embed_tokens");
  for (std::size_t l = 0; l < kinds.size(); ++l)
    x = module("layers." + std::to_string(l), x, [&](const Value<S>& in) {
      const Value<S> normed = rms_norm(in, "temporal_pre_norm", norm);
      const Value<S> h =
          in + (kinds[l] == "recurrent" ? rg_lru_block(normed, "temporal_block", block)
                                        : module("temporal_block", normed, [&](const Value<S>& y) {
                                            return grouped_attention(y, attention);
                                          }));
      return h + module("mlp_block", rms_norm(h, "channel_pre_norm", norm),
                        [&](const Value<S>& y) { return recurrent_gemma_mlp(y, c); });
    });
  x = rms_norm(x, "final_norm", norm);
  return net.build(soft_cap(logits(x, c, is_tied(c, options, true) ? "embed_tokens" : ""), cap));
}

}  // namespace fw::models
