#pragma once

#include <fastweights/layers/feed_forward.hpp>
#include <fastweights/layers/gated_delta_net.hpp>
#include <fastweights/layers/mamba2.hpp>
#include <fastweights/math/random.hpp>
#include <fastweights/networks/operations.hpp>
#include <vector>

/// \file
/// A small language model with memories, convolutions, a cache and positions, for tests of prompts.
/// Its last layer has no state, and sees the position of a token.

namespace mixed_model {

using fw::Index;

constexpr Index symbols = 11;

/// Attention with rotary positions, over a cache that grows.
template <class X> X rotary_attention(const X& in) {
  return module("self_attn", in, [](const X& x) {
    const auto rotated = [&](const char* name) {
      return rotary_embedding(linear(x, name, 8), 2, 4, 100);
    };
    const X y = attention(rotated("q_proj"), rotated("k_proj"), linear(x, "v_proj", 8), 2,
                          fw::CacheOptions{});
    return linear(y, "o_proj", x.rows());
  });
}

/// The model with random weights.
template <class S> fw::networks::Network<S> drawn() {
  using X = fw::networks::Value<S>;
  fw::networks::Builder<S> net;
  net.enter("model");
  X x = embedding(net, "embed_tokens", symbols, 8);
  x = module("layers.0", x, [](const X& in) {
    return in + gated_delta_net(rms_norm(in, "norm", {}), "mixer", {.heads = {1, 2, 4, 3}});
  });
  x = module("layers.1", x, [](const X& in) {
    return in + mamba2(rms_norm(in, "norm", {}), "mixer", {.heads = 2, .d_v = 4, .d_k = 3});
  });
  x = module("layers.2", x,
             [](const X& in) { return in + rotary_attention(rms_norm(in, "norm", {})); });
  x = module("layers.3", x, [](const X& in) {
    return in + swiglu(rotary_embedding(rms_norm(in, "norm", {}), 1, 4, 100), "mlp", 12);
  });
  fw::networks::Network<S> model = net.build(linear(rms_norm(x, "norm", {}), "lm_head", symbols));
  fw::Random random(3);
  fw::initialise(model, random);
  return model;
}

/// Random symbols.
inline std::vector<int> text(std::size_t tokens, std::uint64_t seed) {
  fw::Random random(seed);
  std::vector<int> ids(tokens);
  for (int& id : ids) id = static_cast<int>(random.below(symbols));
  return ids;
}

}  // namespace mixed_model
