// Qwen3.5 with experts: folders have a tensor for every expert, or all experts of a layer in one.

#include <fastweights/models/load.hpp>

#include "models_io/built.hpp"
#include "models_io/folder_files.hpp"

namespace {

using namespace folder_files;
using fw::Index;
using fw::io::SafeTensors;
using Network = fw::networks::Network<float>;
using Matrix = Eigen::MatrixXf;

const fw::models::Config config(nlohmann::json{{"model_type", "qwen3_5_moe_text"},
                                               {"vocab_size", 7},
                                               {"hidden_size", 6},
                                               {"num_hidden_layers", 1},
                                               {"layer_types", {"linear_attention"}},
                                               {"num_experts", 3},
                                               {"num_experts_per_tok", 2},
                                               {"moe_intermediate_size", 5},
                                               {"shared_expert_intermediate_size", 4},
                                               {"linear_conv_kernel_dim", 3},
                                               {"linear_num_key_heads", 1},
                                               {"linear_num_value_heads", 2},
                                               {"linear_key_head_dim", 3},
                                               {"linear_value_head_dim", 2}});

const Matrix& weight(const Network& network, const std::string& name) {
  for (const auto& each : network.weights)
    if (each.name == name) return each.value;
  throw std::invalid_argument(name);
}

// Matrices row by row, one after the other.
std::vector<float> stacked(const std::vector<const Matrix*>& parts) {
  std::vector<float> all;
  for (const Matrix* part : parts)
    for (const float entry : part->reshaped<Eigen::RowMajor>()) all.push_back(entry);
  return all;
}

// The weights of a network, with the experts of its layer in two tensors.
SafeTensors stacked_file(const Network& network) {
  SafeTensorsWriter file;
  for (const auto& each : network.weights)
    if (each.name.find(".experts.") == std::string::npos)
      file.add(each.name, fw::io::Shape(each.axes.begin(), each.axes.end()),
               stacked({&each.value}));
  const std::string experts = "model.layers.0.mlp.experts.";
  std::vector<const Matrix*> in, out;
  for (const char* e : {"0", "1", "2"}) {
    for (const char* map : {".gate_proj.weight", ".up_proj.weight"})
      in.push_back(&weight(network, experts + e + map));
    out.push_back(&weight(network, experts + e + ".down_proj.weight"));
  }
  file.add(experts + "gate_up_proj", {3, 10, 6}, stacked(in));
  file.add(experts + "down_proj", {3, 6, 5}, stacked(out));
  return SafeTensors::parse(file.bytes());
}

Matrix logits(const Network& network) {
  const std::vector<int> ids{1, 6, 0, 3};
  auto state = network.initial_state();
  Network::Trace trace;
  Matrix y(7, 4);
  network.forward(state, fw::Symbols(ids), y, trace);
  return y;
}

TEST_CASE("stacked experts are those of single tensors", "[models_io]") {
  Network single = built(config);
  fw::Random random(3);
  fw::initialise(single, random);
  const SafeTensors file = stacked_file(single);
  Network stacks = built(config, fw::models::model_options(file));
  fw::models::load_weights(stacks, file);
  CHECK(logits(stacks) == logits(single));
  check_error<fw::io::SafeTensorsError>([&] { fw::models::load_weights(single, file); },
                                        {"experts.0.gate_proj.weight: is missing"});
}

}  // namespace
