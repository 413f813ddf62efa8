#pragma once

#include <fastweights/models/parts.hpp>
#include <functional>
#include <map>
#include <string>

/// The function that builds a directory's model, by the model_type or class in its config.json.
/// Every architecture has a source of its own here, which adds itself.
struct Architecture {
  template <class S>
  using Build = std::function<fw::networks::Network<S>(const fw::models::Config&)>;

  Build<double> in_double = {};
  Build<float> in_float = {};
  /// True if the rows of a state in the reference are values and its columns keys, as in our W.
  bool states_by_value = false;
  /// Leaves of our state by the names in the reference, where they are not the usual ones.
  std::map<std::string, std::string> leaves = {};
  /// Parts of our modules' paths that have another name in the reference.
  std::map<std::string, std::string> renamed = {};
  /// Tensors of the checkpoint that the network does not have.
  std::function<bool(const std::string&)> is_ignored = {};
};

inline std::map<std::string, Architecture>& registry() {
  static std::map<std::string, Architecture> all;
  return all;
}

struct Registration {
  Registration(std::initializer_list<const char*> names, const Architecture& architecture) {
    for (const char* name : names) registry()[name] = architecture;
  }
};

/// Facts that the files of a directory have beside config.json. They are set before a model is
/// built.
inline fw::models::ModelOptions test_options;
