#include "models/characters/char_model.hpp"

#include <fastweights/fastweights.hpp>
#include <fastweights/io/weights.hpp>
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
    return char_mixer<fw::IdentityMap>(o, M({.capacity = o.window}));
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

void describe(fw::io::SafeTensorsWriter& writer, const CheckpointInfo& info) {
  std::string bytes;  // as numbers: metadata is UTF-8, and a text may have other bytes
  for (const char c : info.alphabet) bytes += std::to_string(static_cast<unsigned char>(c)) + " ";
  writer.metadata("model", info.kind);
  writer.metadata("alphabet", bytes);
  writer.metadata("layers", std::to_string(info.options.layers));
  writer.metadata("heads", std::to_string(info.options.heads));
  writer.metadata("window", std::to_string(info.options.window));
  writer.metadata("step", std::to_string(info.step));
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
  info.step = std::stol(at("step"));
  return info;
}

void add_parameters(fw::io::SafeTensorsWriter& writer, TrainedModel& model,
                    const std::string& prefix) {
  fw::io::detail::add(writer, model.parameters(), fw::io::detail::Scope::parameters, prefix);
}

void write_checkpoint(const fw::io::SafeTensorsWriter& writer, const std::filesystem::path& path) {
  writer.write(path);
}

void load_parameters(TrainedModel& model, const fw::io::SafeTensors& file,
                     const std::string& prefix) {
  fw::io::detail::load(model.parameters(), fw::io::detail::Scope::parameters, file, prefix);
}
