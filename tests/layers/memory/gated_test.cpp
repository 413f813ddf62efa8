#include <fastweights/feature_maps/dpfp.hpp>
#include <fastweights/feature_maps/normalise.hpp>
#include <fastweights/layers/memory/fast_weight_layer.hpp>
#include <fastweights/layers/norms/rms_norm.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/gated_linear_attention.hpp>

#include "support/layer_checks.hpp"

/// \file
/// Layers around memories with a decay: its projection and its gradient.

using fw::Index;
using layer_checks::check_layer;
using layer_checks::Complex;
using layer_checks::parameter_names;

namespace {

template <class S>
using Delta = fw::FastWeightLayer<fw::GatedDeltaRule<S>, fw::L2Normalise, fw::RmsNorm<S>>;
template <class S> using Kimi = fw::GatedDeltaRule<S, 4, 3, fw::KeyValueBetaVectorDecay>;
template <class S> using Mapped = fw::FastWeightLayer<fw::GatedLinearAttention<S>, fw::Dpfp<2>>;

}  // namespace

TEST_CASE("FastWeightLayer: gated delta rule, one decay per token or per key row", "[layers]") {
  for (Index heads : {1, 3})
    check_layer(Delta<double>({.d_model = 7, .heads = heads},
                              fw::GatedDeltaRule<double>({.key_size = 4, .value_size = 5})),
                Delta<Complex>({.d_model = 7, .heads = heads},
                               fw::GatedDeltaRule<Complex>({.key_size = 4, .value_size = 5})),
                {1, 3, 17});
  const fw::FastWeightOptions options{.d_model = 6, .heads = 2, .scale = 0.5, .bias = true};
  check_layer(fw::FastWeightLayer<Kimi<double>, fw::L2Normalise>(options, Kimi<double>()),
              fw::FastWeightLayer<Kimi<Complex>, fw::L2Normalise>(options, Kimi<Complex>()),
              {1, 5});
}

TEST_CASE("FastWeightLayer: gated linear attention, one decay per feature", "[layers]") {
  const fw::FastWeightOptions options{.d_model = 6, .heads = 2, .d_key = 2};
  const Mapped<double> layer(options,
                             fw::GatedLinearAttention<double>({.key_size = 8, .value_size = 3}));
  check_layer(
      layer,
      Mapped<Complex>(options, fw::GatedLinearAttention<Complex>({.key_size = 8, .value_size = 3})),
      {1, 9});
  CHECK(parameter_names(layer) ==
        "write.key.weight\nwrite.value.weight\nwrite.decay.weight\nread.query.weight\n"
        "output.weight\n");
  CHECK(layer.write.key.weight.rows() == 2 * 2);
  CHECK(layer.write.decay.weight.rows() == 2 * 8);
}

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
  using Layer = fw::FastWeightLayer<Kimi<double>>;
  Layer layer({.d_model = 5, .heads = heads, .bias = true}, Kimi<double>());
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
