#include <fastweights/continuous/density.hpp>
#include <fastweights/io/weights.hpp>
#include <fastweights/layers/attention/joined_attention.hpp>
#include <fastweights/layers/attention/relative_attention.hpp>
#include <fastweights/memories/attention/compressive_memory.hpp>
#include <fastweights/memories/attention/continuous_memory.hpp>

#include "support/catch.hpp"

namespace {

using fw::io::SafeTensors;
using fw::io::SafeTensorsWriter;

SafeTensors written(const SafeTensorsWriter& writer) { return SafeTensors::parse(writer.bytes()); }

template <class S, class Sampling> auto continuous_memory() {
  using Density = fw::MixtureDensity<S, fw::LearnedComponents<S>>;
  using M = fw::ContinuousMemory<S, Density, fw::GaussianBasis<S>, Sampling>;
  typename M::Options o;
  o.d = 4;
  o.heads = 2;
  o.chunk = 3;
  o.samples = 5;
  o.regression.ridge = 1;
  return M(o, {6, {0.1, 0.3}}, Density{fw::LearnedComponents<S>(6)});
}

TEST_CASE("a joined layer's parameters and state are saved and loaded", "[weights]") {
  const auto memory = continuous_memory<float, fw::StickySampling>();
  using Long = fw::LongTermLayer<std::remove_const_t<decltype(memory)>>;
  using Joined = fw::JoinedAttention<fw::RelativeAttention<float>, Long>;
  const fw::RelativeAttention<float> short_term({4, 2, 3, true});
  Joined layer(short_term, Long({.heads = 2}, memory, {}), 3, 2, fw::Join::alpha);
  fw::Random random(5);
  fw::initialise(layer, random);
  Eigen::MatrixXf x(4, 20), y(4, 20), loaded_y(4, 20);
  random.fill(x);
  auto state = layer.initial_state();
  state.seed = 3;
  Joined::Trace trace;
  layer.forward(state, x.leftCols(9), y.leftCols(9), trace);
  SafeTensorsWriter writer;
  fw::io::add_parameters(writer, layer, "layer");
  fw::io::add_state(writer, state, "state");

  const auto file = written(writer);
  Joined loaded(short_term, Long({.heads = 2}, memory, {}), 3, 2, fw::Join::alpha);
  auto resumed = loaded.initial_state();
  fw::io::load_parameters(loaded, file, "layer");
  fw::io::load_state(resumed, file, "state");
  CHECK(resumed.tokens == 9);
  CHECK(resumed.seed == 3);
  layer.forward(state, x.rightCols(11), y.rightCols(11), trace);
  loaded.forward(resumed, x.rightCols(11), loaded_y.rightCols(11), trace);
  CHECK(y.rightCols(11) == loaded_y.rightCols(11));
}

}  // namespace
