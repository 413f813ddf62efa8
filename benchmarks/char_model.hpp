#pragma once

#include <fastweights/feature_maps/normalise.hpp>
#include <fastweights/layers/memory/fast_weight_layer.hpp>
#include <fastweights/layers/models/language_model.hpp>
#include <fastweights/layers/models/pre_norm_block.hpp>
#include <fastweights/layers/norms/layer_norm.hpp>
#include <fastweights/layers/projections/feed_forward.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>

/// \file
/// The language model of examples/char_lm around the delta rule, with heads of 32 and 65 symbols.

namespace char_model {

inline constexpr int head_size = 32;
inline constexpr fw::Index symbols = 65;

using Memory = fw::DeltaRule<float, head_size, head_size>;
using Mixer = fw::FastWeightLayer<Memory, fw::L2Normalise>;
using Block = fw::PreNormBlock<fw::LayerNorm<float>, Mixer, fw::FeedForward<float>>;
using Model = fw::LanguageModel<Block>;

/// With random parameters.
inline Model make(fw::Index layers, fw::Index heads) {
  const fw::Index d = heads * head_size;
  Model model(symbols, layers, Block(Mixer({.d_model = d, .heads = heads}, Memory()), {d, 4 * d}));
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
