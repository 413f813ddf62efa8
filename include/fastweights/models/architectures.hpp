#pragma once

#include <fastweights/models/parts.hpp>
#include <functional>
#include <map>

namespace fw::inline FASTWEIGHTS_ABI::models {

/// Which function builds the network of which model_type. A program adds the architectures that it
/// wants to load, its own too, since each takes seconds to compile:
///
///     fw::models::Architectures<float> known;
///     known.add({"qwen3_5_text", "qwen3_next"}, [](const auto& config, const auto& options) {
///       return fw::models::qwen3_next<float>(config, options);
///     });
///     auto network = known.build(checkpoint.config(), {.context = 4096});
template <class S> class Architectures {
 public:
  using Build = std::function<Network<S>(const Config&, const ModelOptions&)>;

  void add(std::initializer_list<const char*> model_types, const Build& build) {
    for (const char* each : model_types) known_[each] = build;
  }

  /// The network that config.json describes, without weights. Of a model for text and images, the
  /// part for text. Throws std::invalid_argument for an architecture that was not added, or for an
  /// option that it does not support.
  Network<S> build(const Config& config, const ModelOptions& options = {}) const {
    const Config text = text_config(config);
    const auto found = known_.find(text.text("model_type"));
    if (found == known_.end()) text.fail("model_type", "expected one of" + names());
    return found->second(text, options);
  }

 private:
  std::string names() const {
    std::string all;
    for (const auto& [name, build] : known_) all += (all.empty() ? " " : ", ") + name;
    return all;
  }

  std::map<std::string, Build> known_;
};

}  // namespace fw::models
