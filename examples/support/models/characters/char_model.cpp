#include "models/characters/char_model.hpp"

#include <fastweights/fastweights.hpp>
#include <sstream>
#include <stdexcept>

namespace {

template <class Map, class M> AnyLayer<float> char_mixer(const ModelOptions& o, const M& memory) {
  return fw::FastWeightLayer<M, Map>({.d_model = o.heads * head_size, .heads = o.heads}, memory);
}

AnyLayer<float> char_mixer(const std::string& kind, const ModelOptions& o) {
  constexpr int d = head_size;
  using Delta = fw::DeltaRule<float, d, d>;
  if (kind == "sum") {
    using M = fw::LinearAttention<float, d, d, fw::AttentionNormaliser<float>>;
    return char_mixer<fw::EluPlusOne>(o, M());
  }
  if (kind == "delta") return char_mixer<fw::L2Normalise>(o, Delta());
  if (kind == "delta-elu") return char_mixer<fw::SumNormalised<fw::EluPlusOne>>(o, Delta());
  if (kind == "softmax") {
    using M = fw::KeyValueCache<float, d, d>;
    return char_mixer<fw::IdentityMap>(o, M({o.window, fw::WhenFull::slide}));
  }
  throw std::invalid_argument("there is no model '" + kind +
                              "': expected sum, delta, delta-elu or softmax");
}

}  // namespace

std::unique_ptr<LanguageModel<float>> make_char_model(const std::string& kind,
                                                      const ModelOptions& o) {
  return std::make_unique<LanguageModel<float>>(o.symbols, o.layers, char_mixer(kind, o),
                                                4 * o.heads * head_size);
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
