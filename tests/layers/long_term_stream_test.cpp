#include <fastweights/core/random.hpp>
#include <fastweights/layers/attention/long_term_layer.hpp>
#include <fastweights/memories/attention/compressive_memory.hpp>
#include <fastweights/memories/attention/continuous_memory.hpp>

#include "support/catch.hpp"

namespace {

using fw::Index;

fw::ContinuousMemory<float, fw::LocatedDensity<float, fw::DiscreteMoments<float>>> continuous() {
  return {{.d = 4, .heads = 2, .chunk = 3, .samples = 8}, {8, {0.1}}, {}};
}

fw::CompressiveMemory<float> compressive() {
  return fw::CompressiveMemory<float>({.d = 4, .capacity = 3});
}

// What a read gives with a trace of its own.
template <class Layer>
Eigen::MatrixXf read_anew(const Layer& layer, typename Layer::State state,
                          const Eigen::MatrixXf& queries) {
  typename Layer::Trace trace;
  Eigen::MatrixXf out(layer.outputs(), queries.cols());
  layer.read(state, queries, out, trace);
  return out;
}

// Reads again and again with one trace, whatever has changed in between.
template <class M> void check_reuse(const M& memory) {
  using Layer = fw::LongTermLayer<M>;
  Layer layer({.heads = 2}, memory, {});
  fw::Random random(1);
  fw::initialise(layer, random);
  auto state = layer.initial_state();
  typename Layer::Trace trace;
  Eigen::MatrixXf x(4, 3), out(4, 3);
  const auto as_anew = [&] {
    random.fill(x);
    layer.read(state, x, out, trace);
    return out == read_anew(layer, state, x);
  };
  CHECK(as_anew());
  for (int chunk = 0; chunk < 4; ++chunk) {
    layer.write(state, x, trace);
    CHECK(as_anew());
    CHECK(as_anew());
  }
  layer.key.weight(1, 2) += 1;
  CHECK(as_anew());
  layer.value.weight(3, 0) += 1;
  CHECK(as_anew());
  state = layer.initial_state();
  CHECK(as_anew());
}

}  // namespace

TEST_CASE("A long-term layer reads what is there now, not what its trace has seen", "[layers]") {
  check_reuse(continuous());
  check_reuse(compressive());
}
