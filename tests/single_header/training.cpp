#include "uses.hpp"

std::array<double, 3> training(const std::filesystem::path& path) {
  using Layer = fw::FastWeightLayer<fw::DeltaRule<double>, fw::L2Normalise>;
  Layer layer({.d_model = 4, .heads = 1}, fw::DeltaRule<double>({.key_size = 4}));
  fw::Random random(3);
  fw::initialise(layer, random);
  fw::AdamW<Layer> optimiser(layer, {.weight_decay = 0.0});
  Layer::Trace trace;
  Eigen::MatrixXd x(4, 10), y(4, 10), dy(4, 10), dx(4, 10);
  random.fill(x);
  const Eigen::MatrixXd target = 0.5 * x;
  const auto loss = [&](const Layer& of) {
    auto state = of.initial_state();
    of.forward(state, x, y, trace, fw::Pass::train);
    return double(fw::squared_error(y, target, dy));
  };
  std::array<double, 3> losses{};
  losses[0] = loss(layer);
  for (int step = 0; step < 5; ++step) {
    Layer gradient = fw::zero_gradient(layer);
    layer.backward(x, trace, dy, dx, gradient);
    optimiser.step(layer, gradient, 1e-2);
    losses[1] = loss(layer);
  }
  fw::io::save(layer, path);
  Layer loaded = layer;
  fw::initialise(loaded, random);
  fw::io::load(loaded, path);
  losses[2] = loss(loaded);
  return losses;
}
