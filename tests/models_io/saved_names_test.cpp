// Files whose names are not those of the publisher: as transformers saves them, and tied models
// with a head.

#include <fastweights/models/load.hpp>
#include <fastweights/models/save.hpp>

#include "models_io/built.hpp"
#include "models_io/folder_files.hpp"
#include "models_io/seven_symbols.hpp"

namespace {

using namespace folder_files;
using fw::Index;
using fw::io::SafeTensors;
using fw::models::Config;
using fw::models::ModelOptions;
using seven_symbols::drawn;
using seven_symbols::logits;
using seven_symbols::Network;
using Json = nlohmann::json;

const Json kimi{{"model_type", "kimi_linear"},
                {"vocab_size", 7},
                {"hidden_size", 6},
                {"num_hidden_layers", 2},
                {"num_attention_heads", 2},
                {"layer_types", {"full_attention", "full_attention"}},
                {"mlp_layer_types", {"dense", "sparse"}},
                {"intermediate_size", 5},
                {"rms_norm_eps", 1e-5},
                {"kv_lora_rank", 3},
                {"qk_nope_head_dim", 2},
                {"qk_rope_head_dim", 2},
                {"v_head_dim", 3},
                {"num_experts", 2},
                {"num_experts_per_token", 1},
                {"num_expert_group", 1},
                {"topk_group", 1},
                {"moe_intermediate_size", 4},
                {"routed_scaling_factor", 1.5}};

const Json olmo{{"model_type", "olmo_hybrid"},
                {"vocab_size", 7},
                {"hidden_size", 6},
                {"num_hidden_layers", 2},
                {"num_attention_heads", 2},
                {"layer_types", {"linear_attention", "full_attention"}},
                {"head_dim", 4},
                {"intermediate_size", 5},
                {"linear_num_key_heads", 1},
                {"linear_num_value_heads", 2},
                {"linear_key_head_dim", 2},
                {"linear_value_head_dim", 5}};  // 2, 2 and 10 rows of q, k and v

using Tensors = std::map<std::string, std::pair<fw::io::Shape, std::vector<float>>>;

Tensors tensors_of(const Network& network) {
  Tensors all;
  for (const auto& each : network.weights) {
    auto& [shape, entries] = all[each.name];
    shape.assign(each.axes.begin(), each.axes.end());
    for (const float entry : each.value.reshaped<Eigen::RowMajor>()) entries.push_back(entry);
  }
  return all;
}
SafeTensorsWriter file_of(const Tensors& tensors) {
  SafeTensorsWriter file;
  for (const auto& [name, tensor] : tensors) file.add(name, tensor.first, tensor.second);
  return file;
}
void rename(Tensors& tensors, const std::string& from, const std::string& to) {
  for (const auto& [name, tensor] : Tensors(tensors))
    if (const std::size_t at = name.find(from); at != std::string::npos) {
      tensors.erase(name);
      tensors[std::string(name).replace(at, from.size(), to)] = tensor;
    }
}

// The model loads from the tensors and gives these logits.
Network loaded(const Json& config, const Tensors& tensors, const Eigen::MatrixXf& expected) {
  const SafeTensors file = SafeTensors::parse(file_of(tensors).bytes(), "weights");
  Network network = built(config, fw::models::model_options(file, 5));
  fw::models::load_weights(network, file);
  CHECK(logits(network) == expected);
  return network;
}

TEST_CASE("Kimi Linear loads with its own names and with those that transformers saves",
          "[models_io]") {
  const Network model = drawn(built(kimi, {.context = 5}));
  Tensors tensors = tensors_of(model);
  CHECK(tensors.contains("model.layers.0.mlp.gate_proj.weight"));
  loaded(kimi, tensors, logits(model));
  rename(tensors, ".mlp.", ".block_sparse_moe.");
  loaded(kimi, tensors, logits(model));
}

// The three convolutions have 14 rows, which are saved as 5, 5 and 4.
void save_equal_convolutions(Tensors& tensors) {
  const std::string layer = "model.layers.0.linear_attn.", end = "_conv1d.weight";
  std::vector<float> all;
  for (const char* name : {"q", "k", "v"}) {
    const std::vector<float> entries = tensors.at(layer + name + end).second;
    all.insert(all.end(), entries.begin(), entries.end());
  }
  auto from = all.begin();
  for (const auto& [name, rows] : std::map<std::string, Index>{{"k", 5}, {"q", 5}, {"v", 4}}) {
    auto& [shape, entries] = tensors.at(layer + name + end);
    shape = {rows, 1, 4};
    from = all.begin() + 4 * (name == "q" ? 0 : name == "k" ? 5 : 10);
    entries.assign(from, from + 4 * rows);
  }
}

TEST_CASE("OLMo Hybrid loads with its own names and with those that transformers saves",
          "[models_io]") {
  const Network model = drawn(built(olmo, {.context = 5}));
  Tensors tensors = tensors_of(model);
  CHECK(tensors.at("model.layers.0.linear_attn.v_conv1d.weight").first == fw::io::Shape{10, 4});
  loaded(olmo, tensors, logits(model));
  Tensors norms = tensors;
  rename(norms, "layers.1.post_attention_layernorm", "layers.1.feedforward_layer_norm");
  loaded(olmo, norms, logits(model));
  save_equal_convolutions(tensors);
  loaded(olmo, tensors, logits(model));
  save_equal_convolutions(norms);
  loaded(olmo, norms, logits(model));
}

Json tied_olmo() {
  Json config = olmo;
  config["tie_word_embeddings"] = true;
  return config;
}
const std::string table = "model.embed_tokens.weight", head = "lm_head.weight";

TEST_CASE("a tied model may have its table twice, or under the name of the head", "[models_io]") {
  const Network model = drawn(built(tied_olmo(), {.context = 5}));
  Tensors tensors = tensors_of(model);
  REQUIRE(!tensors.contains(head));
  tensors[head] = tensors.at(table);
  CHECK(tensors_of(loaded(tied_olmo(), tensors, logits(model))) == tensors_of(model));
  tensors.erase(table);
  CHECK(tensors_of(loaded(tied_olmo(), tensors, logits(model))) == tensors_of(model));
  tensors.erase(head);
  const SafeTensors file = SafeTensors::parse(file_of(tensors).bytes(), "weights");
  Network network = built(tied_olmo(), fw::models::model_options(file));
  check_error<fw::io::SafeTensorsError>([&] { fw::models::load_weights(network, file); },
                                        {table + ": is missing"});
}

TEST_CASE("a tied model with another head uses the head, as transformers does", "[models_io]") {
  const Network model = drawn(built(olmo, {.context = 5}));  // not tied
  const Tensors tensors = tensors_of(model);
  REQUIRE(tensors.contains(head));
  loaded(tied_olmo(), tensors, logits(model));
  const SafeTensors file = SafeTensors::parse(file_of(tensors).bytes(), "weights");
  CHECK(fw::models::model_options(file).own_head);
  Network network = built(tied_olmo(), {});
  check_error<fw::io::SafeTensorsError>([&] { fw::models::load_weights(network, file); },
                                        {head + ": is in the file, but not expected"});
}

TEST_CASE("a saved folder has the new table under both names", "[models_io]") {
  const Folder source, target;
  write_text(source / "config.json", tied_olmo().dump());
  Tensors tensors = tensors_of(drawn(built(tied_olmo(), {.context = 5})));
  tensors[head] = tensors.at(table);
  for (const bool has_table : {true, false}) {
    if (!has_table) tensors.erase(table);
    file_of(tensors).write(source / "model.safetensors");
    const auto folder = fw::models::Checkpoint::read(source.path());
    const ModelOptions options = fw::models::model_options(folder, 5);
    CHECK(!options.own_head);
    Network network = built(folder.config(), options);
    fw::models::load_weights(network, folder);
    for (auto& weight : network.weights) weight.value *= 2;
    fw::models::save_folder(network, folder, target.path());
    const auto saved = SafeTensors::read(target / "model.safetensors");
    CHECK(saved.contains(table) == has_table);
    std::vector<float> doubled = tensors.at(head).second;
    for (float& entry : doubled) entry *= 2;
    CHECK(saved.values<float>(head) == doubled);
    if (has_table) CHECK(saved.values<float>(table) == doubled);
  }
}

TEST_CASE("embeddings of a model for text and images are tied if either part says so",
          "[models_io]") {
  const auto tied = [](const Json& outer, const Json& inner) {
    Json config{{"text_config", {{"tie_word_embeddings", inner}}}};
    config["tie_word_embeddings"] = outer;
    return fw::models::text_config(Config(config)).flag("tie_word_embeddings");
  };
  CHECK(tied(true, false));
  CHECK(tied(false, true));
  CHECK(tied(true, nullptr));
  CHECK(tied(nullptr, true));
  CHECK(!tied(false, false));
  CHECK(!tied(nullptr, nullptr));
}

}  // namespace
