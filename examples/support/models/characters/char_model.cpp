#include "models/characters/char_model.hpp"

#include <fastweights/feature_maps/chain.hpp>
#include <fastweights/feature_maps/elu_plus_one.hpp>
#include <fastweights/feature_maps/normalise.hpp>
#include <fastweights/layers/fast_weights.hpp>
#include <fastweights/memories/attention/key_value_cache.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>
#include <sstream>
#include <stdexcept>

namespace {

using X = fw::networks::Value<float>;

X char_mixer(const X& x, const std::string& kind, const ModelOptions& o) {
  using Sum = fw::LinearAttention<float, fw::Dynamic, fw::Dynamic, fw::AttentionNormaliser<float>>;
  // Of a size that the compiled memories do not have: they would take minutes.
  using Softmax = fw::KeyValueCache<float, head_size, head_size>;
  const auto layer = [&](const auto& memory, const auto& map) {
    return fast_weights(x, "", memory, {.heads = o.heads}, map);
  };
  const fw::DeltaRule<float> delta({.key_size = head_size});
  if (kind == "sum") return layer(Sum({.key_size = head_size}), fw::EluPlusOne());
  if (kind == "delta") return layer(delta, fw::L2Normalise());
  if (kind == "delta-elu") return layer(delta, fw::SumNormalised<fw::EluPlusOne>());
  if (kind == "softmax") return layer(Softmax({o.window, fw::WhenFull::slide}), fw::IdentityMap());
  throw std::invalid_argument("there is no model '" + kind +
                              "': expected sum, delta, delta-elu or softmax");
}

}  // namespace

std::unique_ptr<LanguageModel<float>> make_char_model(const std::string& kind,
                                                      const ModelOptions& o) {
  const fw::Index width = o.heads * head_size;
  return std::make_unique<LanguageModel<float>>(language_network<float>(
      {.symbols = o.symbols, .layers = o.layers, .width = width, .hidden = 4 * width},
      [&](const X& x) { return char_mixer(x, kind, o); }));
}

fw::io::Metadata describe(const CheckpointInfo& info) {
  std::string bytes;  // as numbers: metadata is UTF-8, and a text may have other bytes
  for (const char c : info.alphabet) bytes += std::to_string(static_cast<unsigned char>(c)) + " ";
  return {{"model", info.kind},
          {"alphabet", bytes},
          {"layers", std::to_string(info.options.layers)},
          {"heads", std::to_string(info.options.heads)},
          {"window", std::to_string(info.options.window)}};
}

const std::string& noted(const fw::io::SafeTensors& file, const std::string& key) {
  const auto found = file.metadata().find(key);
  if (found == file.metadata().end())
    throw std::invalid_argument("the file has no metadata '" + key + "': char_lm did not write it");
  return found->second;
}

CheckpointInfo checkpoint_info(const fw::io::SafeTensors& file) {
  const auto at = [&](const char* key) { return noted(file, key); };
  CheckpointInfo info;
  info.kind = at("model");
  std::istringstream bytes(at("alphabet"));
  for (int c = 0; bytes >> c;) info.alphabet += static_cast<char>(c);
  info.options = {.symbols = static_cast<fw::Index>(info.alphabet.size()),
                  .layers = std::stol(at("layers")),
                  .heads = std::stol(at("heads")),
                  .window = std::stol(at("window"))};
  return info;
}
