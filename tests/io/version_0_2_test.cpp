// Files that version 0.2 wrote: see data/README.md.

#include <fastweights/any_memory/table.hpp>
#include <fastweights/any_memory/table/deltas.hpp>
#include <fastweights/feature_maps/normalise.hpp>
#include <fastweights/io/training.hpp>
#include <fastweights/layers/fast_weight_layer.hpp>

#include "data_folder.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace {

using Layer = fw::FastWeightLayer<fw::DeltaRule<float>, fw::L2Normalise>;
using fw::io::SafeTensors, fw::io::SafeTensorsError, fw::io::SafeTensorsWriter;
using Matrix = Eigen::MatrixXf;

std::filesystem::path data(const std::string& name) {
  return std::filesystem::path(FASTWEIGHTS_REFERENCE_DIR) / name;
}

Matrix tensor(const SafeTensors& file, const std::string& name) { return file.matrix<float>(name); }

// A layer of zeros, as that of version 0.2: FastWeightLayer<DeltaRule, L2Normalise, RmsNorm>.
Layer layer_of_file() {
  return Layer({.d_model = 4, .heads = 2, .norm = fw::networks::HeadNorm::rms},
               fw::DeltaRule<float>({.key_size = 3, .value_size = 2}));
}

// A state of a network in place of that of a layer, after so many tokens of one sequence.
SafeTensors with_names_of_network(const SafeTensors& old, std::int64_t tokens) {
  SafeTensorsWriter writer;
  writer.add("position", tokens);
  for (const std::string head : {"heads.0.W", "heads.1.W"})
    writer.add("FastWeightLayer.memory." + head, tensor(old, "layer.state." + head));
  return SafeTensors::parse(writer.bytes());
}

}  // namespace

TEST_CASE("weights of a layer of version 0.2 load, and give the same outputs", "[weights]") {
  const SafeTensors file = SafeTensors::read(data("version_0_2.safetensors"));
  Layer layer = layer_of_file();
  fw::io::load_parameters(layer, file, "layer.weights");
  const Matrix x = tensor(file, "layer.x"), expected = tensor(file, "layer.y");
  Matrix y(4, 8);
  auto state = layer.initial_state();
  Layer::Trace trace;
  layer.forward(state, x, y, trace);
  CHECK(y.isApprox(expected, 1e-5f));

  // The state after five tokens has other names.
  auto loaded = layer.initial_state();
  CHECK(error_of<SafeTensorsError>([&] { fw::io::load_state(layer, loaded, file, "layer.state"); })
            .ends_with("tensor \"layer.state.position\": not in the file, which has "
                       "\"layer.state.heads.0.W\", and that is not expected"));
  fw::io::load_state(layer, loaded, with_names_of_network(file, 5));
  Matrix last(4, 3);
  layer.forward(loaded, x.rightCols(3), last, trace);
  CHECK(last.isApprox(expected.rightCols(3), 1e-5f));
}

TEST_CASE("states of memories of version 0.2 load, and continue their streams", "[weights]") {
  const SafeTensors file = SafeTensors::read(data("version_0_2.safetensors"));
  for (const std::string name :
       {"GatedDeltaRule", "NormalisedLinearAttention", "TitansMemory", "Mlstm", "KeyValueCache"}) {
    INFO(name);
    const auto memory = fw::make_memory<float>(name, {.key_size = 3, .value_size = 2});
    auto state = memory.initial_state();
    fw::io::load_state(memory, state, file, name + ".state");
    const auto record = [&](const std::string& part, std::span<const fw::SignatureMember> members) {
      std::vector<Matrix> all;
      for (const auto& each : members)
        all.push_back(tensor(file, name + part + std::string(each.name)));
      return all;
    };
    const auto written = record(".write.", memory.written());
    const auto queries = record(".read.", memory.read_with());
    const Matrix expected = record(".out.", memory.given())[0];
    Matrix y = Matrix::Zero(expected.rows(), expected.cols());
    const std::vector<fw::AnyView<const float>> w(written.begin(), written.end());
    const std::vector<fw::AnyView<const float>> q(queries.begin(), queries.end());
    memory.scan(state, w, q, {y});
    CHECK(y.isApprox(expected, 1e-5f));
  }
}

TEST_CASE("training of version 0.2 continues from its checkpoint", "[weights]") {
  const SafeTensors file = SafeTensors::read(data("version_0_2.safetensors"));
  Layer model = layer_of_file(), expected = layer_of_file();
  fw::io::load_parameters(expected, file, "layer.weights");
  fw::Random random(1);
  fw::initialise(model, random);
  fw::AdamW<Layer> optimiser(model);
  const auto notes =
      fw::io::load_training(model, optimiser, data("version_0_2_training.safetensors"));
  CHECK(notes.at("seed") == "7");
  CHECK(optimiser.steps == 3);
  fw::for_each_parameter(
      [](const std::string& path, const auto& weight, const auto& same, const auto& second) {
        INFO(path);
        CHECK(weight == same);
        CHECK((second.array() > 0).any());
      },
      model, expected, optimiser.second);
}
