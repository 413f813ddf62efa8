// limit: 8
// A user's own rule in a layer, and the check of its gradients: see docs/adding_a_rule.md.
#include <fastweights/layers/fast_weight_layer.hpp>
#include <fastweights/testing/gradient_check.hpp>

#include "gated_rule.hpp"

int main() {
  using Layer = fw::FastWeightLayer<GatedRule<float>>;
  Layer layer({.d_model = 8, .heads = 2}, GatedRule<float>{.dk = 4, .dv = 4});
  fw::Random random(1);
  fw::initialise(layer, random);
  Layer::Trace trace;
  auto state = layer.initial_state();
  const Eigen::MatrixXf x = Eigen::MatrixXf::Random(8, 20);
  Eigen::MatrixXf y(8, 20), dx(8, 20);
  layer.forward(state, x, y, trace, fw::Pass::train);
  Layer gradient = fw::zero_gradient(layer);
  layer.backward(x, trace, y, dx, gradient);
  const auto error = fw::testing::gradient_error(GatedRule<double>{.dk = 4, .dv = 5}, 20);
  return dx.allFinite() && error.worst <= 1e-10 ? 0 : 1;
}
