#pragma once

#include <fastweights/feature_maps/normalise.hpp>
#include <fastweights/layers/fast_weights.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <string>
#include <vector>

/// \file
/// The language model of examples/char_lm around the delta rule, with heads of 32 and 65 symbols.

namespace char_model {

inline constexpr int head_size = 32;
inline constexpr fw::Index symbols = 65;

using Memory = fw::DeltaRule<float, head_size, head_size>;
using Model = fw::networks::Network<float>;
using Value = fw::networks::Value<float>;

/// One block, with the layer norms of PyTorch.
inline Value block(const Value& x, fw::Index heads) {
  constexpr fw::networks::NormOptions norm{.epsilon = 1e-5, .bias = true};
  const Value h = x + fast_weights(layer_norm(x, "norm1", norm), "mixer", Memory(),
                                   {.heads = heads}, fw::L2Normalise());
  const Value up = linear(layer_norm(h, "norm2", norm), "ffn.up", 4 * x.rows(), true);
  return h + linear(gelu(up), "ffn.down", x.rows(), true);
}

/// With random parameters.
inline Model make(fw::Index layers, fw::Index heads) {
  fw::networks::Builder<float> net;
  Value x = embedding(net, "embedding", symbols, heads * head_size);
  for (fw::Index i = 0; i < layers; ++i)
    x = module("blocks." + std::to_string(i), x, [&](const Value& in) { return block(in, heads); });
  x = layer_norm(x, "norm", fw::networks::NormOptions{.epsilon = 1e-5, .bias = true});
  Model model = net.build(linear(x, "head", symbols, true));
  fw::Random random(1);
  fw::initialise(model, random);
  return model;
}

inline std::vector<int> random_ids(std::size_t count) {
  fw::Random random(2);
  std::vector<int> ids(count);
  for (int& id : ids) id = static_cast<int>(random.below(symbols));
  return ids;
}

}  // namespace char_model
