#include <fastweights/feature_maps/chain.hpp>
#include <fastweights/feature_maps/dpfp.hpp>
#include <fastweights/feature_maps/normalise.hpp>
#include <fastweights/layers/memory/fast_weight_layer.hpp>
#include <fastweights/layers/norms/rms_norm.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>

#include "support/layer_checks.hpp"

using Catch::Matchers::ContainsSubstring;
using fw::Dynamic;
using fw::Index;
using layer_checks::check_layer;
using layer_checks::Complex;
using layer_checks::parameter_names;

namespace {

template <class S>
using UnitDelta = fw::FastWeightLayer<fw::DeltaRule<S>, fw::L2Normalise, fw::RmsNorm<S>>;
template <class S>
using FixedDelta = fw::FastWeightLayer<fw::DeltaRule<S, 8, 3>, fw::SumNormalised<fw::Dpfp<1>>>;

}  // namespace

TEST_CASE("FastWeightLayer: delta rule, unit keys, output norm", "[layers]") {
  for (Index heads : {1, 3})
    for (Index d : {3, 5})
      check_layer(UnitDelta<double>({.d_model = 7, .heads = heads},
                                    fw::DeltaRule<double>({.key_size = 4, .value_size = d})),
                  UnitDelta<Complex>({.d_model = 7, .heads = heads},
                                     fw::DeltaRule<Complex>({.key_size = 4, .value_size = d})),
                  {1, 3, 17});
}

TEST_CASE("FastWeightLayer: fixed sizes, a map with more features than rows, scale and biases",
          "[layers]") {
  const fw::FastWeightOptions options{
      .d_model = 6, .heads = 2, .d_key = 4, .scale = 0.5, .bias = true};
  check_layer(FixedDelta<double>(options, fw::DeltaRule<double, 8, 3>()),
              FixedDelta<Complex>(options, fw::DeltaRule<Complex, 8, 3>()), {1, 5});
}

TEST_CASE("FastWeightLayer: projections are named by the memory's signature", "[layers]") {
  const UnitDelta<double> layer({.d_model = 6, .heads = 2},
                                fw::DeltaRule<double>({.key_size = 4, .value_size = 3}));
  CHECK(parameter_names(layer) ==
        "write.key.weight\nwrite.value.weight\nwrite.beta.weight\nread.query.weight\nnorm.weight\n"
        "output.weight\n");
  CHECK(layer.write.key.weight.rows() == 8);
  CHECK(layer.write.value.weight.rows() == 6);
  CHECK(layer.write.beta.weight.rows() == 2);
  CHECK(layer.output.weight.cols() == 6);
  CHECK(layer.norm.weight.size() == 3);
  CHECK(fw::parameter_count(layer) == 6 * (8 + 6 + 2 + 8) + 3 + 36);
}

TEST_CASE("FastWeightLayer: the equation, written out head by head", "[layers]") {
  constexpr Index heads = 2, dk = 4, dv = 3, steps = 6;
  UnitDelta<double> layer({.d_model = 5, .heads = heads, .scale = 0.25, .bias = true},
                          fw::DeltaRule<double>({dk, dv}));
  fw::Random random(4);
  layer_checks::randomise(layer, random);
  const Eigen::MatrixXd x = layer_checks::random_matrix(5, steps, random);
  Eigen::MatrixXd y(5, steps), outputs(heads * dv, steps);
  const auto project = [&](const fw::Linear<double>& projection) {
    return ((projection.weight * x).colwise() + projection.bias).eval();
  };
  const Eigen::MatrixXd k = project(layer.write.key), v = project(layer.write.value),
                        b = project(layer.write.beta), q = project(layer.read.query);
  for (Index h = 0; h < heads; ++h) {
    Eigen::MatrixXd W = Eigen::MatrixXd::Zero(dv, dk);
    for (Index t = 0; t < steps; ++t) {
      const Eigen::VectorXd key = k.col(t).segment(h * dk, dk).normalized();
      const Eigen::VectorXd query = q.col(t).segment(h * dk, dk).normalized();
      const double beta = 1 / (1 + std::exp(-b(h, t)));
      W += beta * (v.col(t).segment(h * dv, dv) - W * key) * key.transpose();
      const Eigen::VectorXd o = 0.25 * W * query;
      outputs.col(t).segment(h * dv, dv) =
          layer.norm.weight.cwiseProduct(o) / std::sqrt(o.squaredNorm() / dv + 1e-5);
    }
  }
  auto state = layer.initial_state();
  UnitDelta<double>::Trace trace;
  layer.forward(state, x, y, trace);
  const Eigen::MatrixXd expected = (layer.output.weight * outputs).colwise() + layer.output.bias;
  CHECK(layer_checks::relative_difference(y, expected) <= 1e-14);
}

TEST_CASE("FastWeightLayer: sizes that do not fit are refused", "[layers]") {
  using Layer = FixedDelta<double>;
  const fw::DeltaRule<double, 8, 3> memory;
  CHECK_THROWS_WITH(
      Layer({.d_model = 6, .heads = 2, .d_key = 3}, memory),
      ContainsSubstring("FastWeightLayer: the feature map has 6 features, the memory expects 8"));
  CHECK_THROWS_WITH(Layer({.d_model = 6, .heads = 0, .d_key = 4}, memory),
                    "FastWeightLayer: heads is 0, expected at least 1");
  const Layer layer({.d_model = 6, .heads = 2, .d_key = 4}, memory);
  Layer::State state;
  Layer::Trace trace;
  Eigen::MatrixXd x = Eigen::MatrixXd::Zero(6, 4), y = Eigen::MatrixXd::Ones(6, 4), dx = y;
  CHECK_THROWS_WITH(layer.forward(state, x, y, trace),
                    "FastWeightLayer: the state has 0 heads, the layer expects 2");
  CHECK((y.array() == 1).all());

  // An infer pass makes the trace unusable for backward.
  state = layer.initial_state();
  layer.forward(state, x, y, trace, fw::Pass::train);
  layer.forward(state, x, y, trace);
  Layer grad = layer;
  CHECK_THROWS_WITH(layer.backward(x, trace, y, dx, grad),
                    "FastWeightLayer: backward without a train pass, expected forward with "
                    "fw::Pass::train before it");
}

TEST_CASE("FastWeightLayer: fixed sizes, float, many tokens: streaming agrees", "[layers]") {
  using Layer =
      fw::FastWeightLayer<fw::DeltaRule<float, 32, 32>, fw::L2Normalise, fw::RmsNorm<float>>;
  Layer layer({.d_model = 128, .heads = 4}, fw::DeltaRule<float, 32, 32>());
  fw::Random random(5);
  fw::initialise(layer, random);
  Eigen::MatrixXf x(128, 300), whole(128, 300), parts(128, 300);
  random.fill(x);
  Layer::Trace trace, streaming;
  auto state = layer.initial_state(), other = state;
  layer.forward(state, x, whole, trace);
  for (Index t = 0; t < 300; ++t) layer.forward(other, x.col(t), parts.col(t), streaming);
  CHECK(layer_checks::relative_difference(parts, whole) <= 1e-5f);
}
