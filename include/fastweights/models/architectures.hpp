#pragma once

#include <fastweights/models/parts.hpp>
#include <functional>
#include <map>

namespace fw::inline FASTWEIGHTS_ABI::models {

/// Functions that build the network of a model_type. models/table/ has those of the library. A
/// program may add the architectures that it wants to load, its own too, since each takes seconds
/// to compile:
///
///     fw::models::Architectures<float> known;
///     known.add({"qwen3_5_text", "qwen3_next"}, [](const auto& config, const auto& options) {
///       return fw::models::qwen3_next<float>(config, options);
///     });
///     auto network = known.build(checkpoint.config(), fw::models::model_options(checkpoint));
template <class S> class Architectures {
 public:
  /// Makes a network without weights from a config.json.
  using Build = std::function<Network<S>(const Config&, const ModelOptions&)>;
  /// True if a network does without the tensor of this name.
  using IsIgnored = std::function<bool(const std::string&)>;

  /// Both of one architecture.
  struct Architecture {
    Build build;
    IsIgnored is_ignored;  ///< empty: with all tensors
  };

  /// `is_ignored`: tensors in its files that the network does not have.
  void add(std::initializer_list<const char*> model_types, const Build& build,
           const IsIgnored& is_ignored = {}) {
    for (const std::string each : model_types)
      known_[each] = {[each, build](const Config& config, const ModelOptions& options) {
                        return build(config.of_type(each), options);
                      },
                      is_ignored};
  }

  /// The network that config.json describes, without weights. Of a model for text and images, the
  /// part for text. Throws std::invalid_argument for an architecture that was not added, or for an
  /// option that it does not support.
  Network<S> build(const Config& config, const ModelOptions& options = {}) const {
    return find(config).build(text_config(config), options);
  }
  /// The architecture of a model_type, for a config.json that names none. Throws
  /// std::invalid_argument for an unknown one.
  const Architecture& at(const std::string& model_type) const {
    const auto found = known_.find(model_type);
    if (found == known_.end())
      fw::detail::throw_invalid({"no architecture ", model_type, ", expected one of", names()});
    return found->second;
  }
  /// The `is_ignored` of the architecture that config.json names.
  const IsIgnored& is_ignored(const Config& config) const { return find(config).is_ignored; }

 private:
  const Architecture& find(const Config& config) const {
    const Config text = text_config(config);
    const auto found = known_.find(text.text("model_type"));
    if (found == known_.end()) text.fail("model_type", "expected one of" + names());
    return found->second;
  }
  std::string names() const {
    std::string all;
    for (const auto& each : known_) all += (all.empty() ? " " : ", ") + each.first;
    return all;
  }

  std::map<std::string, Architecture> known_;
};

}  // namespace fw::models
