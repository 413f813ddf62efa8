#pragma once

#include <fastweights/models/config.hpp>
#include <fastweights/networks/network.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "models_io/folder_files.hpp"

/// \file
/// Small models of a config.json: which weights they have, and which options they refuse.

namespace model_options {

using fw::Index;
using nlohmann::json;
using Model = fw::networks::Network<float>;
using Build = Model (*)(const json&);

/// The config with another option.
inline json with(json config, const std::string& name, const json& value) {
  config[name] = value;
  return config;
}

/// The axes of a weight; empty if there is none.
inline std::vector<Index> axes(const Model& model, const std::string& name) {
  for (const auto& weight : model.weights)
    if (weight.name == name) return weight.axes;
  return {};
}
/// The rows of a weight; 0 if there is none.
inline Index rows(const Model& model, const std::string& name) {
  const std::vector<Index> all = axes(model, name);
  return all.empty() ? 0 : all[0];
}

/// Checks that every one of these values is refused, by an error that names the option.
inline void refused(Build build, const json& config, const std::string& name,
                    const std::vector<json>& values) {
  for (const json& value : values) {
    INFO(name << ": " << value);
    folder_files::check_error<std::invalid_argument>([&] { build(with(config, name, value)); },
                                                     {name});
  }
}
inline const std::vector<json> no_sizes{0, -1, 1.5, "12", true, json::array({12})};

}  // namespace model_options
