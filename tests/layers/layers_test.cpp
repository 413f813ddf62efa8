#include <fastweights/layers/norms/layer_norm.hpp>
#include <fastweights/layers/norms/rms_norm.hpp>
#include <fastweights/layers/projections/causal_conv.hpp>
#include <fastweights/layers/symbols.hpp>
#include <fastweights/layers/projections/linear.hpp>

#include "support/layer_checks.hpp"

using Catch::Matchers::ContainsSubstring;
using fw::Index;
using layer_checks::check_layer;
using layer_checks::Complex;
using layer_checks::parameter_names;

TEST_CASE("Linear: gradients, streaming, refusals at odd sizes", "[layers]") {
  for (Index in : {1, 3, 17, 65})
    for (Index out : {1, 17})
      for (bool bias : {false, true})
        check_layer(fw::Linear<double>(in, out, bias), fw::Linear<Complex>(in, out, bias), {1, 5});
}

TEST_CASE("Linear: W x + b under PyTorch's names", "[layers]") {
  fw::Linear<double> layer(2, 3);
  layer.weight << 1, 2, 3, 4, 5, 6;
  layer.bias << 0.5, -0.5, 0.25;
  Eigen::MatrixXd x(2, 2), y(3, 2), expected(3, 2);
  x << 1, -1, 2, 0.5;
  expected << 5.5, 0.5, 10.5, -1.5, 17.25, -1.75;
  fw::Nothing none;
  layer.forward(none, x, y, none);
  CHECK(largest_entry(y - expected) <= 1e-15);
  CHECK(parameter_names(layer) == "weight\nbias\n");
  CHECK(parameter_names(fw::Linear<double>(2, 3, false)) == "weight\n");
  CHECK_THROWS_WITH(fw::Linear<double>(0, 3), "Linear: in is 0, expected at least 1");
}

TEST_CASE("Linear: initialised uniformly in ±1/√in", "[layers]") {
  fw::Linear<float> layer(100, 400);
  fw::Random random(1);
  fw::initialise(layer, random);
  CHECK(layer.weight.cwiseAbs().maxCoeff() <= 0.1f);
  CHECK(layer.bias.cwiseAbs().maxCoeff() <= 0.1f);
  // 40000 uniform numbers have mean 0 ± 0.0003 and mean square 0.01/3 ± 1.5e-5.
  CHECK(std::abs(layer.weight.mean()) < 0.0015f);
  CHECK(layer.weight.squaredNorm() / 40000 == Catch::Approx(0.01 / 3).epsilon(0.025));
}

TEST_CASE("LayerNorm: gradients, streaming, refusals at odd sizes", "[layers]") {
  for (Index d : {2, 3, 17, 65})
    check_layer(fw::LayerNorm<double>(d), fw::LayerNorm<Complex>(d), {1, 5});
  CHECK_THROWS_WITH(fw::LayerNorm<double>(4, 0), "LayerNorm: epsilon is 0, expected above 0");
}

TEST_CASE("LayerNorm: the value of a worked example; one row gives the bias", "[layers]") {
  // x = 1 2 3 4 has mean 5/2 and biased variance 5/4.
  fw::LayerNorm<double> layer(4);
  fw::LayerNorm<double>::Trace trace;
  fw::Nothing none;
  Eigen::VectorXd y(4);
  layer.forward(none, Eigen::Vector4d(1, 2, 3, 4), y, trace);
  const double s = std::sqrt(1.25 + 1e-5);
  CHECK(largest_entry(y - Eigen::Vector4d(-1.5, -0.5, 0.5, 1.5) / s) <= 1e-15);

  fw::LayerNorm<double> one(1);
  one.bias << 0.75;
  Eigen::MatrixXd x(1, 3), z(1, 3);
  x << 1, -5, 1e6;
  one.forward(none, x, z, trace);
  CHECK((z.array() == 0.75).all());
  CHECK(parameter_names(layer) == "weight\nbias\n");
}

TEST_CASE("LayerNorm: the mean is subtracted before squaring", "[layers]") {
  fw::LayerNorm<float> layer(4);
  fw::LayerNorm<float>::Trace trace;
  fw::Nothing none;
  Eigen::VectorXf y(4);
  const Eigen::VectorXf x = Eigen::Vector4f(10001, 10002, 10003, 10004);
  layer.forward(none, x, y, trace);
  CHECK((y - Eigen::Vector4f(-1.3416354f, -0.4472118f, 0.4472118f, 1.3416354f)).norm() < 1e-5f);
}

TEST_CASE("RmsNorm: gradients, streaming, refusals at odd sizes", "[layers]") {
  for (Index d : {1, 3, 17, 65})
    check_layer(fw::RmsNorm<double>(d), fw::RmsNorm<Complex>(d), {1, 5});
  CHECK_THROWS_WITH(fw::RmsNorm<double>(4, NAN), "RmsNorm: epsilon is nan, expected above 0");
}

TEST_CASE("RmsNorm: the value of a worked example; zero stays zero", "[layers]") {
  fw::RmsNorm<double> layer(2, 0.5);
  layer.weight << 1, -2;
  fw::RmsNorm<double>::Trace trace;
  fw::Nothing none;
  Eigen::MatrixXd x(2, 2), y(2, 2), expected(2, 2);
  x << 3, 0, 4, 0;  // mean square 25/2, plus ε = 13
  expected << 3 / std::sqrt(13.0), 0, -8 / std::sqrt(13.0), 0;
  layer.forward(none, x, y, trace);
  CHECK(largest_entry(y - expected) <= 1e-15);
}

TEST_CASE("CausalConv: gradients, streaming, refusals at odd sizes", "[layers]") {
  for (Index d : {1, 3, 17})
    for (Index kernel : {1, 2, 4})
      for (bool bias : {false, true})
        check_layer(fw::CausalConv<double>(d, kernel, bias),
                    fw::CausalConv<Complex>(d, kernel, bias), {1, 7});
}

TEST_CASE("CausalConv: the last tap is for the current token", "[layers]") {
  fw::CausalConv<double> layer(2, 3);
  layer.weight << 1, 10, 100, 2, 0, 1;
  layer.bias << 0.5, 0;
  auto state = layer.initial_state();
  fw::CausalConv<double>::Trace trace;
  Eigen::MatrixXd x(2, 4), y(2, 4), expected(2, 4);
  x << 1, 2, 3, 4, 1, 1, 2, 3;
  expected << 100.5, 210.5, 321.5, 432.5, 1, 1, 4, 5;
  layer.forward(state, x, y, trace);
  CHECK(largest_entry(y - expected) <= 1e-13);
  fw::CausalConv<double>::State other{Eigen::MatrixXd::Zero(2, 5)};
  CHECK_THROWS_WITH(layer.forward(other, x, y, trace),
                    "CausalConv: state has 5 columns, the sequence expects 2");
}

TEST_CASE("Embedding: a row of the weight for every symbol, and its gradient", "[layers]") {
  fw::Embedding<double> layer(3, 2);
  layer.weight << 1, 2, 3, 4, 5, 6;
  const std::vector<int> ids{2, 0, 2};
  Eigen::MatrixXd y(2, 3), expected(2, 3);
  layer.forward(ids, y);
  expected << 5, 1, 5, 6, 2, 6;
  CHECK(y == expected);

  fw::Embedding<double> grad = layer;
  fw::set_zero_parameters(grad);
  Eigen::MatrixXd dy(2, 3), dweight(3, 2);
  dy << 1, 2, 3, 10, 20, 30;
  dweight << 2, 20, 0, 0, 4, 40;
  layer.backward(ids, dy, grad);
  CHECK(grad.weight == dweight);

  const std::vector<int> unknown{0, 1, 3}, negative{0, -1, 0};
  CHECK_THROWS_WITH(layer.forward(unknown, y), "Embedding: token 2 is 3, expected 0 to 2");
  CHECK_THROWS_WITH(layer.forward(negative, y), "Embedding: token 1 is -1, expected 0 to 2");
  CHECK_THROWS_WITH(layer.backward(ids, dy.leftCols(2), grad),
                    "Embedding: dy has 2 columns, the sequence expects 3");
  CHECK(y == expected);
}

TEST_CASE("Parameters: visited by name, counted, added, zeroed", "[layers]") {
  fw::LayerNorm<double> a(3), b(3);
  b.weight << 1, 2, 3;
  b.bias << 4, 5, 6;
  CHECK(fw::parameter_count(a) == 6);
  fw::add_parameters(a, b);
  CHECK(a.weight == Eigen::Vector3d(2, 3, 4));
  CHECK(a.bias == b.bias);
  CHECK(a.epsilon == 1e-5);
  fw::for_each_parameter([](const std::string& path, auto& p,
                            const auto& q) { p = path == "bias" ? (2 * q).eval() : q; },
                         a, b);
  CHECK(a.weight == b.weight);
  CHECK(a.bias == 2 * b.bias);
  fw::set_zero_parameters(a);
  CHECK((a.weight.isZero(0) && a.bias.isZero(0)));
  CHECK_THROWS_WITH(fw::add_parameters(a, fw::LayerNorm<double>(4)),
                    ContainsSubstring("add_parameters: the parameters of from differ"));
}
