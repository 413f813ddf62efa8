#include <fastweights/layers/attention/long_term_layer.hpp>
#include <fastweights/math/random.hpp>
#include <fastweights/memories/attention/compressive_memory.hpp>
#include <fastweights/memories/attention/continuous_memory.hpp>

#include "support/catch.hpp"

namespace {

using fw::Index;

fw::ContinuousMemory<float, fw::MixtureDensity<float, fw::MatchedComponent<float>>> continuous() {
  return {
      {.d = 4, .heads = 2, .chunk = 3, .samples = 8, .regression = {.ridge = 1}}, {8, {0.1}}, {}};
}

fw::CompressiveMemory<float> compressive() {
  return fw::CompressiveMemory<float>({.d = 4, .capacity = 3});
}

// The output of a read with a new trace.
template <class Layer>
Eigen::MatrixXf read_with_new_trace(const Layer& layer, typename Layer::State state,
                                    const Eigen::MatrixXf& queries) {
  typename Layer::Trace trace;
  Eigen::MatrixXf out(layer.outputs(), queries.cols());
  layer.read(state, queries, out, trace);
  return out;
}

// Reads repeatedly with one trace while the memory and the parameters change.
template <class M> void check_reuse(const M& memory) {
  using Layer = fw::LongTermLayer<M>;
  Layer layer({.heads = 2}, memory, {});
  fw::Random random(1);
  fw::initialise(layer, random);
  auto state = layer.initial_state();
  typename Layer::Trace trace;
  Eigen::MatrixXf x(4, 3), out(4, 3);
  const auto equals_new_trace = [&] {
    random.fill(x);
    layer.read(state, x, out, trace);
    return out == read_with_new_trace(layer, state, x);
  };
  CHECK(equals_new_trace());
  for (int chunk = 0; chunk < 4; ++chunk) {
    layer.write(state, x, trace);
    CHECK(equals_new_trace());
    CHECK(equals_new_trace());
  }
  layer.key.weight(1, 2) += 1;
  CHECK(equals_new_trace());
  layer.value.weight(3, 0) += 1;
  CHECK(equals_new_trace());
  state = layer.initial_state();
  CHECK(equals_new_trace());
}

}  // namespace

TEST_CASE("A long-term layer with a reused trace reads the current state and weights", "[layers]") {
  check_reuse(continuous());
  check_reuse(compressive());
}
