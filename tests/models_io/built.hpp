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
/// config.json of a Qwen3.5 with one layer of attention.
inline nlohmann::json one_attention(fw::Index symbols) {
  return {{"model_type", "qwen3_5_text"},
          {"vocab_size", symbols},
          {"hidden_size", 8},
          {"num_hidden_layers", 1},
          {"num_attention_heads", 2},
          {"num_key_value_heads", 1},
          {"head_dim", 4},
          {"intermediate_size", 6},
          {"rms_norm_eps", 1e-5},
          {"max_position_embeddings", 4},
          {"layer_types", {"full_attention"}}};
}
/// Of a config.json without model_type.
inline fw::networks::Network<float> built_as(const char* model_type, const nlohmann::json& config) {
  return fw::models::architectures<float>().at(model_type).build(fw::models::Config(config), {});
}
