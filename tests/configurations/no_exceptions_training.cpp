// Training without exceptions and run-time type information. Without an argument it trains a layer.
// With the argument "error" it passes an input of a wrong size, which must print the error and
// abort.
#include <fastweights/feature_maps/normalise.hpp>
#include <fastweights/layers/fast_weight_layer.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/training/adamw.hpp>
#include <fastweights/training/losses.hpp>

#include "without_exceptions.hpp"

namespace {

using Layer = fw::FastWeightLayer<fw::DeltaRule<float>, fw::L2Normalise>;

Layer small_layer() {
  Layer layer({.d_model = 8, .heads = 2}, fw::DeltaRule<float>({.key_size = 4}));
  fw::Random random(1);
  fw::initialise(layer, random);
  return layer;
}

void layer_learns() {
  Layer layer = small_layer();
  fw::AdamW<Layer> optimiser(layer);
  Layer gradient = fw::zero_gradient(layer);
  Layer::Trace trace;
  Eigen::MatrixXf x(8, 30), y(8, 30), dy(8, 30), dx(8, 30);
  fw::Random random(2);
  random.fill(x);
  const Eigen::MatrixXf target = 0.5f * x;
  float first = 0, loss = 0;
  for (int step = 0; step < 200; ++step) {
    auto state = layer.initial_state();
    layer.forward(state, x, y, trace, fw::Pass::train);
    loss = fw::squared_error(y, target, dy);
    if (step == 0) first = loss;
    fw::set_zero_parameters(gradient);
    layer.backward(x, trace, dy, dx, gradient);
    optimiser.step(layer, gradient, 1e-2);
  }
  check(loss < first / 2, "the loss of a trained layer");
}

}  // namespace

int main(int count, char**) {
  if (count > 1) {
    const Layer layer = small_layer();
    auto state = layer.initial_state();
    Layer::Trace trace;
    const Eigen::MatrixXf x = Eigen::MatrixXf::Ones(7, 3);
    Eigen::MatrixXf y(8, 3);
    layer.forward(state, x, y, trace);
    return 0;
  }
  layer_learns();
  return failures;
}
