#pragma once

#include <fastweights/models/table/groups.hpp>

/// \file
/// Networks of a config.json by fastweights::compiled_models: no test compiles an architecture
/// again.

inline fw::networks::Network<float> built(const fw::models::Config& config,
                                          const fw::models::ModelOptions& options = {}) {
  return fw::models::architectures<float>().build(config, options);
}
inline fw::networks::Network<float> built(const nlohmann::json& config,
                                          const fw::models::ModelOptions& options = {}) {
  return built(fw::models::Config(config), options);
}
/// Of a config.json without model_type.
inline fw::networks::Network<float> built_as(const char* model_type, const nlohmann::json& config) {
  return fw::models::architectures<float>().at(model_type).build(fw::models::Config(config), {});
}
