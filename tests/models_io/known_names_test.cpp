// config.json has what transformers 5.24 reads: entries with two names, defaults of absent sizes,
// and names that it refuses. The values were read from the configs of that version.

#include <fastweights/models/architectures.hpp>
#include <fastweights/models/kimi_linear.hpp>
#include <fastweights/models/nemotron_h.hpp>
#include <fastweights/models/zamba2.hpp>

#include "models_io/folder_files.hpp"

namespace {

using namespace folder_files;
using namespace fw::models;
using fw::Index;
using Json = nlohmann::json;

// Of an architecture: where a file has both names, the first counts.
struct Names {
  const char *type, *first, *second;
  Json one = 5, other = 6;  // two values
};
const Json delta{"linear_attention"}, full{"full_attention"};
const std::vector<Names> all_names{
    {"nemotron_h", "mamba_n_groups", "n_groups"},
    {"nemotron_h", "mamba_d_conv", "conv_kernel"},
    {"nemotron_h", "mamba_dt_min", "time_step_min", 0.5, 0.25},
    {"nemotron_h", "mamba_conv_bias", "use_conv_bias", false, true},
    {"nemotron_h", "num_local_experts", "n_routed_experts"},
    {"nemotron_h", "layer_types", "layers_block_type", delta, full},
    {"zamba2", "layer_types", "layers_block_type", delta, full},
    {"granitemoehybrid", "layers_block_type", "layer_types", delta, full},
    {"minimax", "num_experts", "num_local_experts"},
    {"jamba", "num_local_experts", "num_experts"},
    {"kimi_linear", "num_experts", "num_local_experts"},
    {"kimi_linear", "num_experts_per_token", "num_experts_per_tok"},
    {"kimi_linear", "num_expert_group", "n_group"},
    {"kimi_linear", "num_shared_experts", "n_shared_experts"},
    {"kimi_linear", "moe_renormalize", "norm_topk_prob", false, true},
    {"bailing_hybrid", "num_experts", "num_local_experts"},
    {"bailing_hybrid", "num_experts_per_token", "num_experts_per_tok"},
    {"bailing_hybrid", "num_expert_group", "n_group"},
    {"bailing_hybrid", "num_shared_experts", "n_shared_experts"},
    {"bailing_hybrid", "moe_renormalize", "norm_topk_prob", false, true},
    {"lfm2", "block_ff_dim", "intermediate_size"},
    {"lfm2", "tie_embedding", "tie_word_embeddings", false, true},
    {"recurrent_gemma", "sliding_window", "attention_window_size"}};

Json of(const std::string& type, Json entries = Json::object()) {
  entries["model_type"] = type;
  return entries;
}
Json with(Json config, const std::string& name, const Json& value) {
  config[name] = value;
  return config;
}
void refused(const Json& config, const std::vector<std::string>& parts) {
  check_error<std::invalid_argument>([&] { Config(config, "file"); }, parts);
}

bool is(const Config& config, const std::string& name, const Json& value) {
  if (value.is_array()) return config.texts(name) == value.get<std::vector<std::string>>();
  if (value.is_boolean()) return config.has(name) && config.flag(name) == value.get<bool>();
  return config.number(name) == value.get<double>();
}

TEST_CASE("an entry of config.json with two names has the value that transformers reads",
          "[models_io]") {
  for (const Names& n : all_names) {
    INFO(n.type << ": " << n.first << ", " << n.second);
    for (const char* read : {n.first, n.second}) {
      CHECK(is(Config(of(n.type, {{n.first, n.one}})), read, n.one));
      CHECK(is(Config(of(n.type, {{n.second, n.one}})), read, n.one));
      CHECK(is(Config(of(n.type, {{n.first, n.one}, {n.second, n.other}})), read, n.one));
    }
    // In transformers a null under the first name hides the second.
    refused(of(n.type, {{n.first, nullptr}, {n.second, n.other}}),
            {std::string("file: ") + n.first + ": expected a value"});
    // Other architectures read one name.
    CHECK(!Config(of("qwen3_next", {{n.first, n.one}})).has(n.second));
  }
}

TEST_CASE("errors name the entry that the file has", "[models_io]") {
  const Config config(of("nemotron_h", {{"mamba_n_groups", 0}}), "file");
  check_error<std::invalid_argument>([&] { config.size("n_groups"); },
                                     {"file: mamba_n_groups: expected at least 1, is 0"});
  const Config usual(of("lfm2", {{"num_attention_heads", 3}, {"hidden_size", 12}}), "file");
  check_error<std::invalid_argument>([&] { grouped_attention_options(usual, {}); },
                                     {"num_key_value_heads (by default)", "is 8"});
}

TEST_CASE("absent sizes of attention are those of transformers", "[models_io]") {
  const auto sizes = [](const std::string& type, const Json& entries = Json::object()) {
    Json config = of(type, {{"num_attention_heads", 16}, {"hidden_size", 32}});
    config.update(entries);
    const GroupedAttention o = grouped_attention_options(Config(config), {});
    return std::pair(o.d, o.key_heads);
  };
  using Sizes = std::pair<Index, Index>;
  CHECK(sizes("qwen3_next") == Sizes(256, 2));
  CHECK(sizes("qwen3_5_text") == Sizes(256, 4));
  CHECK(sizes("qwen3_5_moe_text") == Sizes(256, 2));
  CHECK(sizes("nemotron_h") == Sizes(128, 8));
  for (const char* type : {"bamba", "falcon_h1", "jamba", "lfm2"})
    CHECK(sizes(type) == Sizes(2, 8));
  for (const char* type : {"granitemoehybrid", "olmo_hybrid", "recurrent_gemma"})
    CHECK(sizes(type) == Sizes(2, 16));
  CHECK(sizes("bamba", {{"num_key_value_heads", nullptr}}) == Sizes(2, 16));
  CHECK(sizes("qwen3_next", {{"head_dim", 4}, {"num_key_value_heads", 1}}) == Sizes(4, 1));
  CHECK(Config(of("minimax")).size("num_key_value_heads") == 8);
  CHECK(Config(of("bailing_hybrid")).size("head_dim") == 128);
}

TEST_CASE("entries that transformers refuses are refused by name", "[models_io]") {
  for (const char* type : {"bamba", "falcon_h1", "recurrent_gemma", "jamba"})
    for (const char* name : {"layer_types", "layers_block_type"})
      refused(of(type, {{name, delta}}), {std::string("file: ") + name + ": is not read"});
  for (const char* type : {"mamba", "mamba2", "falcon_mamba"})
    refused(of(type, {{"layer_types", delta}}), {"file: layer_types: is not read"});
  refused(of("jamba", {{"layers_num_experts", {1}}}), {"file: layers_num_experts: is not read"});
  refused(of("qwen3_next", {{"per_layer_config", {{"1", {{"head_dim", 2}}}}}}),
          {"file: per_layer_config: "});
}

TEST_CASE("Nemotron-H reads Mamba's names, and layer_types before older names", "[models_io]") {
  Json config = of("nemotron_h", {{"mamba_num_heads", 2},
                                  {"mamba_head_dim", 3},
                                  {"ssm_state_size", 4},
                                  {"layer_norm_epsilon", 1e-5},
                                  {"mamba_n_groups", 2},
                                  {"n_groups", 1},
                                  {"mamba_d_conv", 3},
                                  {"mamba_dt_min", 0.5},
                                  {"time_step_min", 0.001},
                                  {"mamba_conv_bias", false},
                                  {"hybrid_override_pattern", "M-"}});
  const fw::networks::Mamba2Options mixer = nemotron_mixer(Config(config));
  CHECK(mixer.groups == 2);
  CHECK(mixer.kernel == 3);
  CHECK(mixer.least_step == 0.5);
  CHECK(!mixer.conv_bias);
  using Kinds = std::vector<std::string>;
  CHECK(nemotron_layer_kinds(Config(config)) == Kinds{"linear_attention", "mlp"});
  config["layers_block_type"] = {"attention", "moe"};
  CHECK(nemotron_layer_kinds(Config(config)) == Kinds{"full_attention", "moe"});
  config["layer_types"] = {"mamba"};
  CHECK(nemotron_layer_kinds(Config(config)) == Kinds{"linear_attention"});
}

// transformers takes what it computes from other entries out of the file, if it is there.
TEST_CASE("Zamba2 refuses computed sizes that are others", "[models_io]") {
  const Json config = of("zamba2", {{"hidden_size", 12},
                                    {"num_attention_heads", 2},
                                    {"n_mamba_heads", 3},
                                    {"mamba_d_state", 4}});
  const std::vector<std::string> kinds{"linear_attention", "hybrid"};
  const auto check = [&](const std::string& name, const Json& right, const Json& wrong) {
    INFO(name);
    CHECK_NOTHROW(check_zamba2_sizes(Config(with(config, name, right)), kinds));
    check_error<std::invalid_argument>(
        [&] { check_zamba2_sizes(Config(with(config, name, wrong)), kinds); }, {name});
  };
  CHECK_NOTHROW(check_zamba2_sizes(Config(config), kinds));
  check("attention_hidden_size", 24, 12);
  check("attention_head_dim", 12, 6);
  check("head_dim", 12, 6);
  check("mamba_headdim", 8, 4);
  check("hybrid_layer_ids", {1u}, {0u});
}

TEST_CASE("Kimi Linear reads both lists of linear_attn_config, or none", "[models_io]") {
  const auto kinds = [](const Json& own) {
    return kimi_layer_types(
        Config(of("kimi_linear", {{"num_hidden_layers", 2}, {"linear_attn_config", own}})));
  };
  using Kinds = std::vector<std::string>;
  const Kinds usual{"linear_attention", "linear_attention"};
  CHECK(kinds({{"full_attn_layers", {1u}}, {"kda_layers", {2u}}}) ==
        Kinds{"full_attention", "linear_attention"});
  CHECK(kinds({{"full_attn_layers", {1u}}}) == usual);
  CHECK(kinds(Json::object()) == usual);
  for (const Json& wrong : {Json{1u}, Json{1u, 2u}, Json::array()})
    check_error<std::invalid_argument>(
        [&] {
          kinds({{"full_attn_layers", {1u}}, {"kda_layers", wrong}});
        },
        {"kda_layers"});
}

// The part for text has its own model_type; a file without one gets that of its architecture.
TEST_CASE("names of a part for text, and of a file without model_type", "[models_io]") {
  const Json nested{{"model_type", "any"}, {"text_config", of("minimax", {{"num_experts", 3}})}};
  CHECK(text_config(Config(nested)).size("num_local_experts") == 3);
  const Config bare(Json{{"num_experts", 3}});
  CHECK(!bare.has("num_local_experts"));
  CHECK(bare.of_type("minimax").size("num_local_experts") == 3);
  Architectures<float> known;
  Index experts = 0;
  known.add({"minimax"}, [&](const Config& c, const ModelOptions&) {
    experts = c.size("num_local_experts");
    return fw::networks::Network<float>();
  });
  known.at("minimax").build(bare, {});
  CHECK(experts == 3);
}

}  // namespace
