#pragma once

#include <fastweights/layers/rwkv4.hpp>
#include <fastweights/models/layer_kinds.hpp>
#include <fastweights/models/parts.hpp>

/// \file
/// RWKV-4 as a language model: Peng et al. 2023, arXiv 2305.13048, section 3. For every layer:
///
///     h = x + time_mix(norm(x))     y = h + channel_mix(norm(h))
///
/// with layer norms; x of the first layer has a norm of its own before.

namespace fw::inline FASTWEIGHTS_ABI::models {

/// The number of times x is halved before layer l: at inference published code halves it behind
/// every rescale_every layers, against overflow in 16 bits, and divides the maps that add to it.
inline Index rwkv4_halvings(const Config& c, Index l) {
  const char* name = "rescale_every";
  if (c.has(name) && c.number(name) <= 0) return 0;
  return l / c.size(name, 6);
}

/// The norm of x where published code has x / 2ⁿ. Its x is not halved here: norm(x / 2ⁿ) with ε is
/// norm(x) with 4ⁿ ε, so the logits are the same numbers and the weights stay as they are.
inline NormOptions rwkv4_norm(double epsilon, Index halvings) {
  return {.epsilon = epsilon * std::exp2(2.0 * double(halvings)), .bias = true};
}

/// The whole model. `prefix` is in front of all names but that of head.
template <class S>
Network<S> rwkv4(const Config& c, const ModelOptions& options = {},
                 const std::string& prefix = "rwkv") {
  const Index d = c.size("hidden_size"), channels = c.size("attention_hidden_size", d);
  const Index hidden = c.size("intermediate_size", 4 * d), layers = layer_count(c);
  check_states(c, "attention_hidden_size", double(channels));
  const double epsilon = c.number("layer_norm_epsilon", 1e-5);
  if (rwkv4_halvings(c, layers) > 400) c.fail("rescale_every", "expected fewer halvings than 400");
  Builder<S> net;
  net.enter(prefix);
  Value<S> x = embedding(net, "embeddings", c.size("vocab_size"), d);
  for (Index l = 0; l < layers; ++l)
    x = module("blocks." + std::to_string(l), x, [&](const Value<S>& in) {
      const NormOptions norm = rwkv4_norm(epsilon, rwkv4_halvings(c, l));
      const Value<S> before = l == 0 ? layer_norm(in, "pre_ln", norm) : in;
      const Value<S> h =
          before + rwkv4_time_mix(layer_norm(before, "ln1", norm), "attention", channels);
      return h + rwkv4_channel_mix(layer_norm(h, "ln2", norm), "feed_forward", hidden);
    });
  // The ε of the last norm is that of PyTorch, whatever layer_norm_epsilon is.
  x = layer_norm(x, "ln_out", rwkv4_norm(1e-5, rwkv4_halvings(c, layers)));
  if (is_tied(c, options)) return net.build(logits(x, c, "embeddings"));
  net.leave();
  return net.build(linear(x, "head", c.size("vocab_size")));
}

}  // namespace fw::models
