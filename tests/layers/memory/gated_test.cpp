#include <fastweights/layers/memory/fast_weight_layer.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>

#include "support/layer_checks.hpp"

/// \file
/// The decay of layers around gated memories: its range and its place in the equation.

using fw::Index;
using layer_checks::Complex;

namespace {

using Kimi = fw::GatedDeltaRule<double, 4, 3, fw::KeyValueBetaVectorDecay>;

}  // namespace

TEST_CASE("FastWeightLayer: a decay is the 16th root of a sigmoid", "[layers]") {
  const Eigen::ArrayXd z = Eigen::ArrayXd::LinSpaced(41, -20, 20);
  const Eigen::ArrayXd y = fw::detail::logistic_root(z);
  CHECK(largest_entry(y.pow(16) * (1 + (-z).exp()) - 1) <= 1e-14);

  Eigen::ArrayXcd step = z.cast<Complex>();
  step += Complex(0, 1e-30);
  const Eigen::ArrayXcd stepped = fw::detail::logistic_root(step);
  const Eigen::ArrayXd slope = fw::detail::logistic_root_derivative(y);
  CHECK(largest_entry(stepped.real() - y) <= 1e-15);
  CHECK(largest_entry(stepped.imag() * 1e30 - slope) <= 1e-15);
}

TEST_CASE("FastWeightLayer: a decay does not overflow", "[layers]") {
  Eigen::ArrayXf z(5);
  z << -1e30f, -160.0f, 0.0f, 160.0f, 1e30f;
  const Eigen::ArrayXf y = fw::detail::logistic_root(z);
  CHECK(y[0] <= 1e-30f);
  CHECK(std::abs(y[1] * std::exp(10.0f) - 1) <= 1e-5f);  // e^160 overflows
  CHECK(std::abs(y[2] - std::pow(0.5f, 1 / 16.0f)) <= 1e-6f);
  CHECK(y[3] == 1.0f);
  CHECK(y[4] == 1.0f);
}

TEST_CASE("FastWeightLayer: the equation with a decay, written out head by head", "[layers]") {
  constexpr Index heads = 2, dk = 4, dv = 3, steps = 6;
  using Layer = fw::FastWeightLayer<Kimi>;
  Layer layer({.d_model = 5, .heads = heads, .bias = true, .allow_unstable = true}, Kimi());
  fw::Random random(4);
  layer_checks::randomise(layer, random);
  const Eigen::MatrixXd x = layer_checks::random_matrix(5, steps, random);
  Eigen::MatrixXd y(5, steps), outputs(heads * dv, steps);
  const auto project = [&](const fw::Linear<double>& projection) {
    return ((projection.weight * x).colwise() + projection.bias).eval();
  };
  const auto sigmoid = [](const auto& z) { return (1 / (1 + (-z.array()).exp())).matrix().eval(); };
  const Eigen::MatrixXd k = project(layer.write.key), v = project(layer.write.value),
                        beta = sigmoid(project(layer.write.beta)),
                        decay_16 = sigmoid(project(layer.write.decay)),
                        q = project(layer.read.query);
  for (Index h = 0; h < heads; ++h) {
    Eigen::MatrixXd W = Eigen::MatrixXd::Zero(dv, dk);
    for (Index t = 0; t < steps; ++t) {
      const Eigen::VectorXd key = k.col(t).segment(h * dk, dk);
      const Eigen::VectorXd decay = decay_16.col(t).segment(h * dk, dk).array().pow(1.0 / 16);
      W = (W * decay.asDiagonal()).eval();
      W += beta(h, t) * (v.col(t).segment(h * dv, dv) - W * key) * key.transpose();
      outputs.col(t).segment(h * dv, dv) = W * q.col(t).segment(h * dk, dk);
    }
  }
  auto state = layer.initial_state();
  Layer::Trace trace;
  layer.forward(state, x, y, trace);
  const Eigen::MatrixXd expected = (layer.output.weight * outputs).colwise() + layer.output.bias;
  CHECK(layer_checks::relative_difference(y, expected) <= 1e-14);
}
