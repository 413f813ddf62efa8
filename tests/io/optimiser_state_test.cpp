// An optimiser is a record of models, whose members include settings such as `parallel`.

#include <fastweights/feature_maps/normalise.hpp>
#include <fastweights/io/weights.hpp>
#include <fastweights/layers/memory/fast_weight_layer.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/training/adamw.hpp>

#include "support/catch.hpp"

namespace {

using Layer = fw::FastWeightLayer<fw::DeltaRule<float>, fw::L2Normalise>;
using fw::io::SafeTensors, fw::io::SafeTensorsError, fw::io::SafeTensorsWriter;

fw::AdamW<Layer> optimiser(bool parallel) {
  const Layer layer({.d_model = 4, .heads = 2, .parallel = parallel},
                    fw::DeltaRule<float>({.key_size = 3}));
  return fw::AdamW<Layer>(layer);
}

struct Switch {
  bool on = false;
  static constexpr auto names = fw::names("on");
};

}  // namespace

TEST_CASE("The state of an optimiser of a fast-weight layer is saved and loaded") {
  fw::AdamW<Layer> saved = optimiser(true), loaded = optimiser(false);
  saved.steps = 12;
  saved.first.output.weight.setConstant(0.5f);
  saved.second.write.beta.weight.setConstant(3);
  SafeTensorsWriter writer;
  fw::io::add_state(writer, saved, "optimiser");
  fw::io::load_state(loaded, SafeTensors::parse(writer.bytes()), "optimiser");
  CHECK(loaded.first.parallel);
  CHECK(loaded.steps == 12);
  CHECK(loaded.first.output.weight == saved.first.output.weight);
  CHECK(loaded.second.write.beta.weight == saved.second.write.beta.weight);
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
