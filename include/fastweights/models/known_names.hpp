#pragma once

#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

/// \file
/// What transformers 5.24 makes of config.json before it builds a model, by model_type: entries
/// with two names (attribute_map, and renamed arguments of __post_init__), defaults that do not
/// follow from other entries, and names that it refuses. Config applies all of it, so models read
/// one name.

namespace fw::inline FASTWEIGHTS_ABI::models::detail {

using ModelTypes = std::array<std::string_view, 6>;  // the rest is empty

inline bool is_one_of(const ModelTypes& types, std::string_view type) {
  for (const std::string_view each : types)
    if (!each.empty() && each == type) return true;
  return false;
}

// An entry with two names. Where a file has both, transformers takes `first`.
struct TwoNames {
  ModelTypes types;
  const char *first, *second;
};
inline constexpr TwoNames two_names[] = {
    {{"nemotron_h"}, "layer_types", "layers_block_type"},
    {{"nemotron_h"}, "num_local_experts", "n_routed_experts"},
    {{"nemotron_h"}, "mamba_n_groups", "n_groups"},
    {{"nemotron_h"}, "mamba_d_conv", "conv_kernel"},
    {{"nemotron_h"}, "mamba_dt_min", "time_step_min"},
    {{"nemotron_h"}, "mamba_conv_bias", "use_conv_bias"},
    {{"zamba2"}, "layer_types", "layers_block_type"},
    {{"granitemoehybrid"}, "layers_block_type", "layer_types"},
    {{"minimax"}, "num_experts", "num_local_experts"},
    {{"jamba"}, "num_local_experts", "num_experts"},
    {{"kimi_linear", "bailing_hybrid"}, "num_experts", "num_local_experts"},
    {{"kimi_linear", "bailing_hybrid"}, "num_experts_per_token", "num_experts_per_tok"},
    {{"kimi_linear", "bailing_hybrid"}, "num_expert_group", "n_group"},
    {{"kimi_linear", "bailing_hybrid"}, "num_shared_experts", "n_shared_experts"},
    {{"kimi_linear", "bailing_hybrid"}, "moe_renormalize", "norm_topk_prob"},
    {{"lfm2"}, "block_ff_dim", "intermediate_size"},
    {{"lfm2"}, "tie_embedding", "tie_word_embeddings"},
    {{"recurrent_gemma"}, "sliding_window", "attention_window_size"}};

// The value of an absent size.
struct UsualSize {
  ModelTypes types;
  const char* name;
  int size;
};
inline constexpr UsualSize usual_sizes[] = {
    {{"qwen3_next", "qwen3_5_text", "qwen3_5_moe_text"}, "head_dim", 256},
    {{"nemotron_h", "bailing_hybrid"}, "head_dim", 128},
    {{"nemotron_h", "bamba", "falcon_h1", "minimax", "jamba", "lfm2"}, "num_key_value_heads", 8},
    {{"qwen3_5_text"}, "num_key_value_heads", 4},
    {{"qwen3_next", "qwen3_5_moe_text"}, "num_key_value_heads", 2}};

// A name that transformers refuses, because it computes the entry from others.
struct ComputedEntry {
  ModelTypes types;
  const char* name;
};
inline constexpr ComputedEntry computed_entries[] = {
    {{"bamba", "falcon_h1", "recurrent_gemma", "jamba"}, "layer_types"},
    {{"bamba", "falcon_h1", "recurrent_gemma", "jamba"}, "layers_block_type"},
    {{"mamba", "mamba2", "falcon_mamba"}, "layer_types"},
    {{"jamba"}, "layers_num_experts"}};

// Gives both names of an entry the same value, and absent sizes their usual ones. `fail(name,
// expected)` throws. The result has what errors call an entry that was not there by its name.
template <class Fail>
std::map<std::string, std::string> add_known_names(nlohmann::json& json, const Fail& fail) {
  const std::string type = json.at("model_type").get<std::string>();
  std::map<std::string, std::string> origins;
  for (const ComputedEntry& each : computed_entries)
    if (is_one_of(each.types, type) && json.contains(each.name))
      fail(each.name, "is not read, since it follows from other entries");
  for (const TwoNames& each : two_names) {
    if (!is_one_of(each.types, type)) continue;
    const bool has_first = json.contains(each.first);
    if (has_first && json[each.first].is_null()) fail(each.first, "expected a value or no entry");
    const auto [from, to] =
        has_first ? std::pair(each.first, each.second) : std::pair(each.second, each.first);
    if (!json.contains(from)) continue;
    json[to] = nlohmann::json(json[from]);
    origins[to] = from;
  }
  for (const UsualSize& each : usual_sizes)
    if (is_one_of(each.types, type) && !json.contains(each.name)) {
      json[each.name] = each.size;
      origins[each.name] = std::string(each.name) + " (by default)";
    }
  return origins;
}

}  // namespace fw::models::detail
