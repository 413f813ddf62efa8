// The layer around a memory: its equations, names and sizes.

#include <fastweights/any_memory/table.hpp>
#include <fastweights/any_memory/table/deltas.hpp>
#include <fastweights/any_memory/table/gated_deltas.hpp>
#include <fastweights/feature_maps/chain.hpp>
#include <fastweights/feature_maps/dpfp.hpp>
#include <fastweights/feature_maps/elu_plus_one.hpp>
#include <fastweights/feature_maps/normalise.hpp>
#include <fastweights/layers/fast_weight_layer.hpp>

#include "networks/operation_checks.hpp"

namespace {

using namespace fw::networks;
using namespace operation_checks;
using Catch::Matchers::ContainsSubstring;
using UnitDelta = fw::FastWeightLayer<fw::DeltaRule<double>, fw::L2Normalise>;
using SumDpfp = fw::SumNormalised<fw::Dpfp<1>>;

UnitDelta unit_delta(const fw::FastWeightOptions& o) {
  return UnitDelta(o, fw::DeltaRule<double>({.key_size = 4, .value_size = 3}));
}

// Draws every weight, also those that start as 0 or 1.
void draw(Net& network, std::uint64_t seed) {
  fw::Random random(seed);
  for (auto& each : network.weights)
    random.fill(each.value, 0.8 / std::sqrt(double(each.value.cols())));
}

Matrix<double> run_whole(const Net& network, const Matrix<double>& x) {
  State state = network.initial_state();
  Net::Trace trace;
  return run(network, state, x, trace);
}

// W x + b of a projection.
Matrix<double> projected(Net& network, const std::string& name, const Matrix<double>& x) {
  return (weight(network, name + ".weight") * x).colwise() + weight(network, name + ".bias").col(0);
}

TEST_CASE("FastWeightLayer: projections are named by the memory's signature", "[networks]") {
  STATIC_REQUIRE(fw::Layer<UnitDelta>);
  UnitDelta layer = unit_delta({.d_model = 6, .heads = 2, .norm = HeadNorm::rms});
  CHECK(names_of_weights(layer) ==
        "write.key.weight\nwrite.value.weight\nwrite.beta.weight\nread.query.weight\nnorm.weight\n"
        "output.weight\n");
  CHECK(weight(layer, "write.key.weight").rows() == 8);
  CHECK(weight(layer, "write.value.weight").rows() == 6);
  CHECK(weight(layer, "write.beta.weight").rows() == 2);
  CHECK(weight(layer, "output.weight").cols() == 6);
  CHECK(weight(layer, "norm.weight").size() == 3);
  CHECK(fw::parameter_count(layer) == 6 * (8 + 6 + 2 + 8) + 3 + 36);
  // Until they are initialised or loaded:
  CHECK(weight(layer, "write.key.weight").isZero(0));
  CHECK((weight(layer, "norm.weight").array() == 1).all());
}

TEST_CASE("FastWeightLayer: the equation, written out head by head", "[networks]") {
  constexpr Index heads = 2, dk = 4, dv = 3, steps = 6;
  UnitDelta layer = unit_delta(
      {.d_model = 5, .heads = heads, .scale = 0.25, .bias = true, .norm = HeadNorm::rms});
  draw(layer, 4);
  fw::Random random(5);
  const Matrix<double> x = random_matrix(5, steps, random);
  const Matrix<double> k = projected(layer, "write.key", x), v = projected(layer, "write.value", x),
                       b = projected(layer, "write.beta", x), q = projected(layer, "read.query", x);
  Matrix<double> outputs(heads * dv, steps);
  for (Index h = 0; h < heads; ++h) {
    Matrix<double> W = Matrix<double>::Zero(dv, dk);
    for (Index t = 0; t < steps; ++t) {
      const Eigen::VectorXd key = k.col(t).segment(h * dk, dk).normalized();
      const Eigen::VectorXd query = q.col(t).segment(h * dk, dk).normalized();
      const double beta = 1 / (1 + std::exp(-b(h, t)));
      W += beta * (v.col(t).segment(h * dv, dv) - W * key) * key.transpose();
      const Eigen::VectorXd o = 0.25 * W * query;
      outputs.col(t).segment(h * dv, dv) = weight(layer, "norm.weight").col(0).cwiseProduct(o) /
                                           std::sqrt(o.squaredNorm() / dv + 1e-5);
    }
  }
  check_equal(run_whole(layer, x), projected(layer, "output", outputs), 1e-14);
}

TEST_CASE("FastWeightLayer: the equation with a decay, written out head by head", "[networks]") {
  constexpr Index heads = 2, dk = 4, dv = 3, steps = 6;
  using Kimi = fw::GatedDeltaRule<double, fw::Dynamic, fw::Dynamic, fw::KeyValueBetaVectorDecay>;
  fw::FastWeightLayer<Kimi> layer(
      {.d_model = 5, .heads = heads, .bias = true, .allow_unstable = true}, Kimi({dk, dv}));
  draw(layer, 4);
  fw::Random random(5);
  const Matrix<double> x = random_matrix(5, steps, random);
  const auto sigmoid_of = [&](const std::string& name) -> Matrix<double> {
    return 1 / (1 + (-projected(layer, name, x).array()).exp());
  };
  const Matrix<double> k = projected(layer, "write.key", x), v = projected(layer, "write.value", x),
                       q = projected(layer, "read.query", x), beta = sigmoid_of("write.beta"),
                       decay_16 = sigmoid_of("write.decay");
  Matrix<double> outputs(heads * dv, steps);
  for (Index h = 0; h < heads; ++h) {
    Matrix<double> W = Matrix<double>::Zero(dv, dk);
    for (Index t = 0; t < steps; ++t) {
      const Eigen::VectorXd key = k.col(t).segment(h * dk, dk);
      const Eigen::VectorXd decay = decay_16.col(t).segment(h * dk, dk).array().pow(1.0 / 16);
      W = (W * decay.asDiagonal()).eval();
      W += beta(h, t) * (v.col(t).segment(h * dv, dv) - W * key) * key.transpose();
      outputs.col(t).segment(h * dv, dv) = W * q.col(t).segment(h * dk, dk);
    }
  }
  check_equal(run_whole(layer, x), projected(layer, "output", outputs), 1e-14);
}

// With d_v = 1 and a strength of 1, y = W_o (α W + v k) q.
TEST_CASE("FastWeightLayer: a decay does not overflow", "[networks]") {
  using Rule = fw::GatedDeltaRule<float>;
  fw::FastWeightLayer<Rule, fw::L2Normalise> layer({.d_model = 2},
                                                   Rule({.key_size = 1, .value_size = 1}));
  const auto set = [&](const std::string& name, float of_first, float of_second) {
    for (auto& each : layer.weights)
      if (each.name == name + ".weight") each.value = Eigen::RowVector2f(of_first, of_second);
  };
  set("write.key", 1, 1);
  set("read.query", 1, 1);
  set("write.value", 1, 0);  // the second token writes nothing
  set("write.beta", 1e30f, -1e30f);
  layer.weights.back().value = Eigen::Vector2f(1, 0);
  for (const auto& [z, expected] : {std::pair{-1e30f, 0.0f},
                                    {-160.0f, std::exp(-10.0f)},
                                    {0.0f, std::pow(0.5f, 1 / 16.0f)},
                                    {160.0f, 1.0f},
                                    {1e30f, 1.0f}}) {
    set("write.decay", 0, z);
    auto state = layer.initial_state();
    Network<float>::Trace trace;
    Eigen::MatrixXf x = Eigen::Matrix2f::Identity(), y(2, 2);
    layer.forward(state, x, y, trace);
    INFO("z = " << z);
    CHECK(std::abs(y(0, 1) / y(0, 0) - expected) <= 1e-5f * expected);
  }
}

TEST_CASE("FastWeightLayer: sizes that do not fit are refused", "[networks]") {
  using Layer = fw::FastWeightLayer<fw::DeltaRule<double>, SumDpfp>;
  const fw::DeltaRule<double> memory({.key_size = 8, .value_size = 3});
  CHECK_THROWS_WITH(
      Layer({.d_model = 6, .heads = 2, .d_key = 3}, memory),
      ContainsSubstring("FastWeightLayer: the feature map has 6 features, the memory expects 8"));
  CHECK_THROWS_WITH(Layer({.d_model = 6, .heads = 0, .d_key = 4}, memory),
                    "FastWeightLayer: heads is 0, expected at least 1");
  CHECK_THROWS_WITH(Layer({.d_model = 0, .d_key = 4}, memory),
                    "FastWeightLayer: d_model is 0, expected at least 1");
}

TEST_CASE("fast weights: a map with more features than rows, scale and biases", "[networks]") {
  check_operation(6, [](const auto& x) {
    const fw::DeltaRule<ScalarOf<decltype(x)>> rule({.key_size = 8, .value_size = 3});
    return fast_weights(x, "mixer", rule, {.heads = 2, .key_size = 4, .scale = 0.5, .bias = true},
                        SumDpfp());
  });
}

TEST_CASE("fast weights: the sum rule with its normaliser", "[networks]") {
  check_operation(6, [](const auto& x) {
    const auto rule = fw::make_memory<ScalarOf<decltype(x)>>(
        "NormalisedLinearAttention", {.key_size = 5, .value_size = 3, .more = {{"epsilon", 1e-3}}});
    return fast_weights(x, "mixer", rule, {.heads = 2}, fw::EluPlusOne());
  });
}

TEST_CASE("fast weights: slow weights of a memory are drawn", "[networks]") {
  const auto build = [](auto map) {
    Builder<double> net;
    const auto rule =
        fw::make_memory<double>("RecurrentDeltaNet", {.key_size = 4, .value_size = 3});
    return net.build(fast_weights(net.input(6), "mixer", rule, {.heads = 2}, map));
  };
  Net network = build(fw::IdentityMap());
  CHECK_THAT(names_of_weights(network),
             ContainsSubstring("mixer.slow.0.key\nmixer.slow.1.key\nmixer.slow.0.query\n"));
  fw::Random random(1);
  fw::initialise(network, random);
  CHECK(weight(network, "mixer.slow.1.key").cwiseAbs().maxCoeff() > 0.1);
  CHECK_THROWS_WITH(build(fw::EluPlusOne()),
                    "mixer: the feature map is EluPlusOne, expected IdentityMap, as "
                    "RecurrentDeltaNet takes no keys");
}

}  // namespace
