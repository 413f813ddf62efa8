#pragma once

#include <fastweights/models/config.hpp>
#include <stdexcept>
#include <string>

/// The config.json of a published size, without its tokens and texts. `tiny` is none; it is for
/// short tests.
inline fw::models::Config published_shape(const std::string& name) {
  nlohmann::json shape = {
      {"model_type", "qwen3_5_text"},
      {"linear_conv_kernel_dim", 4},
      {"tie_word_embeddings", true},
      {"rms_norm_eps", 1e-6},
      {"rope_parameters",
       {{"rope_type", "default"}, {"rope_theta", 1e7}, {"partial_rotary_factor", 0.25}}}};
  if (name == "tiny")
    shape.update({{"vocab_size", 300},
                  {"hidden_size", 64},
                  {"num_hidden_layers", 4},
                  {"intermediate_size", 96},
                  {"num_attention_heads", 4},
                  {"num_key_value_heads", 2},
                  {"head_dim", 16},
                  {"linear_num_key_heads", 2},
                  {"linear_num_value_heads", 4},
                  {"linear_key_head_dim", 16},
                  {"linear_value_head_dim", 16}});
  else if (name == "qwen3.5-0.8b")
    shape.update({{"vocab_size", 248320},
                  {"hidden_size", 1024},
                  {"num_hidden_layers", 24},
                  {"intermediate_size", 3584},
                  {"num_attention_heads", 8},
                  {"num_key_value_heads", 2},
                  {"head_dim", 256},
                  {"linear_num_key_heads", 16},
                  {"linear_num_value_heads", 16},
                  {"linear_key_head_dim", 128},
                  {"linear_value_head_dim", 128}});
  else
    throw std::invalid_argument("--random: expected tiny or qwen3.5-0.8b");
  return fw::models::Config(shape, name);
}
