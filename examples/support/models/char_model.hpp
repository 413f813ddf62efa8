#pragma once

#include <fastweights/fastweights.hpp>
#include <fastweights/io/weights.hpp>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "models/kinds.hpp"

/// \file
/// The character models of char_lm and generate: the same network around four memories.

/// Heads have a size fixed at compile time; the width of a model is heads × head_size.
inline constexpr int head_size = 32;

struct ModelOptions {
  fw::Index symbols = 0;
  fw::Index layers = 2;
  fw::Index heads = 4;
  fw::Index window = 128;  ///< tokens that softmax attention keeps
};

template <class M, class Map> using Mixer = fw::FastWeightLayer<M, Map>;
template <class M, class Map>
using Block = fw::PreNormBlock<fw::LayerNorm<float>, Mixer<M, Map>, fw::FeedForward<float>>;
template <class M, class Map> using Model = fw::LanguageModel<Block<M, Map>>;

template <class M, class Map> Model<M, Map> make_model(const ModelOptions& o, const M& memory) {
  const fw::Index width = o.heads * head_size;
  return {o.symbols, o.layers,
          Block<M, Map>(Mixer<M, Map>({.d_model = width, .heads = o.heads}, memory),
                        fw::FeedForward<float>(width, 4 * width))};
}

inline const Kinds model_kinds{{"sum", "sum rule, ELU+1"},
                               {"delta", "delta rule, L2 keys"},
                               {"delta-elu", "delta rule, ELU+1"},
                               {"softmax", "softmax attention"}};

/// Calls f with a model of that kind, its parameters still zero.
template <class F> auto with_model(const std::string& kind, const ModelOptions& o, const F& f) {
  constexpr int d = head_size;
  using Normaliser = fw::AttentionNormaliser<float>;
  if (kind == "sum") {
    using M = fw::LinearAttention<float, d, d, Normaliser>;
    return f(make_model<M, fw::EluPlusOne>(o, M()));
  }
  if (kind == "delta") {
    using M = fw::DeltaRule<float, d, d>;
    return f(make_model<M, fw::L2Normalise>(o, M()));
  }
  if (kind == "delta-elu") {
    using M = fw::DeltaRule<float, d, d>;
    return f(make_model<M, fw::SumNormalised<fw::EluPlusOne>>(o, M()));
  }
  if (kind == "softmax") {
    using M = fw::KeyValueCache<float, d, d>;
    return f(make_model<M, fw::IdentityMap>(o, M({.capacity = o.window})));
  }
  throw std::invalid_argument("there is no model '" + kind +
                              "': expected sum, delta, delta-elu or softmax");
}

/// What a checkpoint says of its model.
struct CheckpointInfo {
  std::string kind, alphabet;
  ModelOptions options;
  long step = 0;
};

inline void describe(fw::io::SafeTensorsWriter& writer, const CheckpointInfo& info) {
  std::string bytes;  // numbers, since metadata is UTF-8 and a text need not be
  for (const char c : info.alphabet) bytes += std::to_string(static_cast<unsigned char>(c)) + " ";
  writer.metadata("model", info.kind);
  writer.metadata("alphabet", bytes);
  writer.metadata("layers", std::to_string(info.options.layers));
  writer.metadata("heads", std::to_string(info.options.heads));
  writer.metadata("window", std::to_string(info.options.window));
  writer.metadata("step", std::to_string(info.step));
}

/// What char_lm noted under a key. Throws std::invalid_argument for a file of something else.
inline const std::string& noted(const fw::io::SafeTensors& file, const std::string& key) {
  const auto found = file.metadata().find(key);
  if (found == file.metadata().end())
    throw std::invalid_argument("the file has no metadata '" + key + "': char_lm did not write it");
  return found->second;
}

inline CheckpointInfo checkpoint_info(const fw::io::SafeTensors& file) {
  const auto at = [&](const char* key) { return noted(file, key); };
  CheckpointInfo info;
  info.kind = at("model");
  std::istringstream bytes(at("alphabet"));
  for (int c = 0; bytes >> c;) info.alphabet += static_cast<char>(c);
  info.options = {static_cast<fw::Index>(info.alphabet.size()), std::stol(at("layers")),
                  std::stol(at("heads")), std::stol(at("window"))};
  info.step = std::stol(at("step"));
  return info;
}
