// A layer around a memory of fixed sizes, all of whose forms this source compiles.

#include <fastweights/feature_maps/normalise.hpp>
#include <fastweights/layers/fast_weight_layer.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>

#include "support/catch.hpp"
#include "support/largest_entry.hpp"

namespace {

using fw::Index;
using fw::networks::HeadNorm;

TEST_CASE("FastWeightLayer: fixed sizes, float, many tokens: streaming agrees", "[networks]") {
  using Layer = fw::FastWeightLayer<fw::DeltaRule<float, 32, 32>, fw::L2Normalise>;
  Layer layer({.d_model = 128, .heads = 4, .norm = HeadNorm::rms}, fw::DeltaRule<float, 32, 32>());
  fw::Random random(5);
  fw::initialise(layer, random);
  Eigen::MatrixXf x(128, 300), whole(128, 300), parts(128, 300);
  random.fill(x);
  Layer::Trace trace, streaming;
  auto state = layer.initial_state(), other = state;
  layer.forward(state, x, whole, trace);
  for (Index t = 0; t < 300; ++t) layer.forward(other, x.col(t), parts.col(t), streaming);
  CHECK(largest_entry(parts - whole) <= 1e-5f * largest_entry(whole));
}

}  // namespace
