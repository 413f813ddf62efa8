// An optimiser is a record of models, whose members may include settings.

#include <fastweights/any_memory/table/deltas.hpp>
#include <fastweights/feature_maps/normalise.hpp>
#include <fastweights/io/weights.hpp>
#include <fastweights/layers/fast_weight_layer.hpp>
#include <fastweights/training/adamw.hpp>

#include "support/catch.hpp"

namespace {

using Layer = fw::FastWeightLayer<fw::DeltaRule<float>, fw::L2Normalise>;
using fw::io::SafeTensors, fw::io::SafeTensorsError, fw::io::SafeTensorsWriter;

fw::AdamW<Layer> optimiser() {
  const Layer layer({.d_model = 4, .heads = 2}, fw::DeltaRule<float>({.key_size = 3}));
  return fw::AdamW<Layer>(layer);
}

Eigen::MatrixXf& weight(Layer& layer, const std::string& name) {
  for (auto& each : layer.weights)
    if (each.name == name) return each.value;
  throw std::logic_error("no weight " + name);
}

// A model with a setting.
struct Model {
  Eigen::MatrixXf weight = Eigen::MatrixXf::Ones(2, 3);
  bool parallel = false;
  static constexpr auto names = fw::names("weight", "parallel");
};

struct Switch {
  bool on = false;
  static constexpr auto names = fw::names("on");
};

}  // namespace

TEST_CASE("The state of an optimiser of a fast-weight layer is saved and loaded") {
  fw::AdamW<Layer> saved = optimiser(), loaded = optimiser();
  saved.steps = 12;
  weight(saved.first, "output.weight").setConstant(0.5f);
  weight(saved.second, "write.beta.weight").setConstant(3);
  SafeTensorsWriter writer;
  fw::io::add_state(writer, saved, "optimiser");
  fw::io::load_state(loaded, SafeTensors::parse(writer.bytes()), "optimiser");
  CHECK(loaded.steps == 12);
  CHECK((weight(loaded.first, "output.weight").array() == 0.5f).all());
  CHECK((weight(loaded.second, "write.beta.weight").array() == 3).all());
}

TEST_CASE("The state of an optimiser is saved with the settings of the model") {
  Model model{.parallel = true};
  const fw::AdamW<Model> saved(model);
  model.parallel = false;
  fw::AdamW<Model> loaded(model);
  SafeTensorsWriter writer;
  fw::io::add_state(writer, saved, "optimiser");
  fw::io::load_state(loaded, SafeTensors::parse(writer.bytes()), "optimiser");
  CHECK(loaded.first.parallel);
  CHECK(loaded.second.parallel);
}

TEST_CASE("A truth value in a file is 0 or 1") {
  for (const std::int64_t stored : {0, 1, 2, -1}) {
    SafeTensorsWriter writer;
    writer.add("on", {}, std::vector<std::int64_t>{stored});
    const SafeTensors file = SafeTensors::parse(writer.bytes());
    Switch value{.on = stored == 0};
    if (stored == 0 || stored == 1) {
      fw::io::load_state(value, file);
      CHECK(value.on == (stored == 1));
    } else {
      CHECK_THROWS_AS(fw::io::load_state(value, file), SafeTensorsError);
    }
  }
}
