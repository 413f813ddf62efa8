// Mamba, Falcon-Mamba and Jamba: options of config.json that they read, and those that they refuse.

#include "models_io/built.hpp"
#include "models_io/model_options.hpp"

namespace {

using namespace fw::models;
using namespace model_options;
using folder_files::check_error;

const json mamba_config{{"vocab_size", 7}, {"hidden_size", 18}, {"num_hidden_layers", 2}};
const json jamba_config{{"vocab_size", 7},          {"hidden_size", 18},
                        {"num_hidden_layers", 4},   {"num_attention_heads", 3},
                        {"num_key_value_heads", 3}, {"intermediate_size", 5},
                        {"num_experts", 2},         {"attn_layer_period", 2},
                        {"attn_layer_offset", 1},   {"num_experts_per_tok", 1}};

Model mamba_of(const json& config) { return built_as("mamba", config); }
Model falcon_of(const json& config) { return built_as("falcon_mamba", config); }
Model jamba_of(const json& config) { return built_as("jamba", config); }

const std::string mixer = "backbone.layers.1.mixer.";

TEST_CASE("Mamba without options has the published ones", "[models_io]") {
  const Model model = mamba_of(mamba_config);
  CHECK(axes(model, mixer + "A_log") == std::vector<Index>{36, 16});
  CHECK(axes(model, mixer + "dt_proj.weight") == std::vector<Index>{36, 2});  // 18 / 16, up
  CHECK(axes(model, mixer + "conv1d.weight") == std::vector<Index>{36, 4});
  CHECK(axes(model, mixer + "conv1d.bias") == std::vector<Index>{36});
  CHECK(axes(model, mixer + "in_proj.bias").empty());
  CHECK(axes(model, "lm_head.weight").empty());
}

TEST_CASE("Mamba reads its options", "[models_io]") {
  const auto built = [](const std::string& name, const json& value, const std::string& weight) {
    return axes(mamba_of(with(mamba_config, name, value)), weight);
  };
  CHECK(built("time_step_rank", "auto", mixer + "dt_proj.weight") == std::vector<Index>{36, 2});
  CHECK(built("time_step_rank", 5, mixer + "dt_proj.weight") == std::vector<Index>{36, 5});
  CHECK(built("expand", 1.5, mixer + "D") == std::vector<Index>{27});
  CHECK(built("intermediate_size", 40, mixer + "D") ==
        std::vector<Index>{40});  // expand is not read
  CHECK(built("state_size", 3, mixer + "A_log") == std::vector<Index>{36, 3});
  CHECK(built("conv_kernel", 2, mixer + "conv1d.weight") == std::vector<Index>{36, 2});
  CHECK(built("use_conv_bias", false, mixer + "conv1d.bias").empty());
  CHECK(built("use_bias", true, mixer + "in_proj.bias") == std::vector<Index>{72});
  CHECK(built("use_bias", true, mixer + "out_proj.bias") == std::vector<Index>{18});
  CHECK(built("tie_word_embeddings", false, "lm_head.weight") == std::vector<Index>{7, 18});
}

TEST_CASE("Mamba and Falcon-Mamba refuse what they do not support", "[models_io]") {
  for (const auto build : {mamba_of, falcon_of}) {
    for (const char* name : {"vocab_size", "hidden_size", "num_hidden_layers", "state_size",
                             "conv_kernel", "intermediate_size"})
      refused(build, mamba_config, name, no_sizes);
    refused(build, mamba_config, "time_step_rank", {0, -1, 1.5, "all"});
    refused(build, mamba_config, "expand", {0, -1, 1e11, "2"});
    refused(build, mamba_config, "hidden_act", {"gelu", 1});
  }
  CHECK_THROWS_AS(falcon_of(with(mamba_config, "mixer_rms_eps", 0)), std::invalid_argument);
}

TEST_CASE("hostile sizes of Mamba are refused before memory is taken", "[models_io]") {
  for (const char* name : {"state_size", "intermediate_size", "time_step_rank", "conv_kernel"}) {
    INFO(name);
    CHECK_THROWS_AS(mamba_of(with(with(mamba_config, name, 2147483648), "expand", 1e7)),
                    std::invalid_argument);
  }
  // Each layer fits, but not all of them.
  const json deep = with(with(mamba_config, "num_hidden_layers", 100000), "state_size", 4096);
  check_error<std::invalid_argument>([&] { mamba_of(deep); }, {"state_size", "2^30"});
  check_error<std::invalid_argument>(
      [&] {
        jamba_of(with(with(jamba_config, "num_hidden_layers", 100000), "mamba_d_state", 4096));
      },
      {"mamba_d_state", "2^30"});
}

TEST_CASE("Jamba has the layers that its options say", "[models_io]") {
  const std::string layer = "model.layers.";
  const auto has = [&](const Model& model, int l, const std::string& name) {
    return !axes(model, layer + std::to_string(l) + '.' + name).empty();
  };
  const Model model = jamba_of(jamba_config);
  for (const int l : {0, 1, 2, 3}) {
    CHECK(has(model, l, "self_attn.q_proj.weight") == (l % 2 == 1));
    CHECK(has(model, l, "mamba.dt_layernorm.weight") == (l % 2 == 0));
    CHECK(has(model, l, "feed_forward.experts.1.up_proj.weight") == (l % 2 == 1));
    CHECK(has(model, l, "feed_forward.up_proj.weight") == (l % 2 == 0));
  }
  const Model dense = jamba_of(with(jamba_config, "num_experts", 1));
  for (const int l : {0, 1, 2, 3}) CHECK(has(dense, l, "feed_forward.up_proj.weight"));
  const Model renamed =
      jamba_of(with(with(jamba_config, "num_experts", nullptr), "num_local_experts", 3));
  CHECK(has(renamed, 1, "feed_forward.experts.2.up_proj.weight"));
  CHECK(
      has(jamba_of(with(jamba_config, "expert_layer_offset", 0)), 0, "feed_forward.router.weight"));
  CHECK(has(jamba_of(with(jamba_config, "mamba_proj_bias", true)), 0, "mamba.in_proj.bias"));
}

TEST_CASE("Jamba refuses what it does not support", "[models_io]") {
  refused(jamba_of, jamba_config, "attn_layer_offset", {2, -1, "1"});
  refused(jamba_of, jamba_config, "expert_layer_offset", {2, 7, -1});
  for (const char* name : {"attn_layer_period", "expert_layer_period", "mamba_d_state",
                           "mamba_d_conv", "num_attention_heads", "num_experts"})
    refused(jamba_of, jamba_config, name, no_sizes);
  refused(jamba_of, jamba_config, "mamba_expand", {0, -1, 2147483648, "2"});
  refused(jamba_of, jamba_config, "num_key_value_heads", {2});
  refused(jamba_of, jamba_config, "hidden_act", {"gelu"});
  CHECK_THROWS_AS(jamba_of(with(jamba_config, "num_experts_per_tok", 3)), std::invalid_argument);
}

}  // namespace
