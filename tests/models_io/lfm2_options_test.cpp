// LFM2 and RecurrentGemma: options of config.json that they read, and those that they refuse.

#include "models_io/built.hpp"
#include "models_io/model_options.hpp"

namespace {

using folder_files::ContainsSubstring;
using namespace fw::models;
using namespace model_options;

const json sizes{{"vocab_size", 7},          {"hidden_size", 12},        {"num_hidden_layers", 3},
                 {"num_attention_heads", 2}, {"num_key_value_heads", 2}, {"intermediate_size", 30}};

Model lfm2_of(const json& config) { return built_as("lfm2", config); }
Model gemma_of(const json& config) { return built_as("recurrent_gemma", config); }

TEST_CASE("LFM2 computes the rows of its feed-forward layers", "[models_io]") {
  const auto hidden = [](const json& config) {
    return rows(lfm2_of(config), "model.layers.0.feed_forward.w1.weight");
  };
  const json small = with(sizes, "block_multiple_of", 8);
  CHECK(hidden(small) == 24);                                             // 20, rounded up
  CHECK(hidden(with(small, "block_ffn_dim_multiplier", 1.29)) == 32);     // 25.8
  CHECK(hidden(with(small, "block_ffn_dim_multiplier", nullptr)) == 20);  // not rounded
  CHECK(hidden(with(small, "block_auto_adjust_ff_dim", false)) == 30);
  CHECK(hidden(with(small, "block_ff_dim", 48)) == 32);
  CHECK(hidden(sizes) == 256);
}

TEST_CASE("LFM2 has the layers that its options say", "[models_io]") {
  const auto kinds = [](const json& config) {
    const Model model = lfm2_of(config);
    std::string letters;
    for (const char* l : {"0", "1", "2"})
      letters +=
          rows(model, "model.layers." + std::string(l) + ".conv.conv.weight") > 0 ? 'c' : 'a';
    return letters;
  };
  CHECK(kinds(sizes) == "aaa");
  CHECK(kinds(with(sizes, "full_attn_idxs", {1u})) == "cac");
  const json types{"conv", "full_attention", "full_attention"};
  CHECK(kinds(with(with(sizes, "full_attn_idxs", {0u}), "layer_types", types)) == "caa");
}

TEST_CASE("LFM2 reads its options, and refuses what it does not support", "[models_io]") {
  CHECK(rows(lfm2_of(sizes), "lm_head.weight") == 0);
  CHECK(rows(lfm2_of(with(sizes, "tie_word_embeddings", false)), "lm_head.weight") == 7);
  CHECK(rows(lfm2_of(with(sizes, "tie_embedding", false)), "lm_head.weight") == 7);
  const json convolutions = with(with(sizes, "conv_bias", true), "full_attn_idxs", {2u});
  for (const char* map : {"in_proj", "conv", "out_proj"})
    CHECK(rows(lfm2_of(convolutions), "model.layers.0.conv." + std::string(map) + ".bias") > 0);
  CHECK_NOTHROW(lfm2_of(with(sizes, "theta", 1000000.0)));
  refused(lfm2_of, sizes, "theta", {10000});
  refused(lfm2_of, sizes, "conv_L_cache", no_sizes);
  refused(lfm2_of, sizes, "block_multiple_of", no_sizes);
  refused(lfm2_of, sizes, "block_ffn_dim_multiplier", {0, -1, 1e12});
  refused(lfm2_of, sizes, "layer_types", {{"conv"}, {"conv", "conv", "mamba"}});
  refused(lfm2_of, sizes, "full_attn_idxs", {{0u, 1u, 2u, 2u}, {-1}});
  refused(lfm2_of, sizes, "rope_parameters", {{{"rope_type", "yarn"}}, {{"rope_theta", 0.5}}});
}

TEST_CASE("RecurrentGemma reads its options, and refuses what it does not support", "[models_io]") {
  const std::string layer = "model.layers.";
  const Model model = gemma_of(sizes);
  CHECK(rows(model, layer + "1.temporal_block.rg_lru.recurrent_param") == 12);
  CHECK(rows(model, layer + "2.temporal_block.o_proj.bias") == 12);
  CHECK(rows(model, layer + "2.temporal_block.q_proj.bias") == 0);
  CHECK(rows(model, layer + "0.mlp_block.gate_proj.weight") == 15);
  const Model other = gemma_of(with(with(sizes, "lru_width", 20), "block_types", {"recurrent"}));
  CHECK(rows(other, layer + "2.temporal_block.rg_lru.recurrent_param") == 20);
  CHECK(rows(gemma_of(with(sizes, "attention_bias", true)),
             layer + "2.temporal_block.q_proj.bias") == 12);
  CHECK(rows(gemma_of(with(sizes, "tie_word_embeddings", false)), "lm_head.weight") == 7);
  refused(gemma_of, sizes, "lru_width", {13, 0});
  refused(gemma_of, sizes, "block_types", {json::array(), {"recurrent", "conv"}, "recurrent"});
  refused(gemma_of, sizes, "hidden_activation", {"gelu"});
  refused(gemma_of, sizes, "logits_soft_cap", {0, -1, "30"});
  refused(gemma_of, sizes, "attention_window_size", no_sizes);
  refused(gemma_of, sizes, "conv1d_width", no_sizes);
  refused(gemma_of, sizes, "partial_rotary_factor", {1.5, -1});
  CHECK_THROWS_WITH(gemma_of(with(sizes, "num_hidden_layers", 301)),
                    ContainsSubstring("block_types"));
}

}  // namespace
