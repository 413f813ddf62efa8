#include <fastweights/layers/recurrent/lstm.hpp>
#include <fastweights/layers/recurrent/rnn.hpp>

#include "support/layer_checks.hpp"

using fw::Index;
using layer_checks::check_layer;
using layer_checks::Complex;
using layer_checks::parameter_names;

namespace {

constexpr auto pytorch_names = "weight_ih_l0\nweight_hh_l0\nbias_ih_l0\nbias_hh_l0\n";

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace

TEST_CASE("Rnn: gradients, streaming, refusals at odd sizes", "[layers]") {
  for (Index in : {1, 3, 17})
    for (Index hidden : {1, 5, 20})
      for (bool bias : {false, true}) {
        check_layer(fw::Rnn<double>(in, hidden, bias), fw::Rnn<Complex>(in, hidden, bias), {1, 7});
        check_layer(fw::Rnn<double, fw::Relu>(in, hidden, bias),
                    fw::Rnn<Complex, fw::Relu>(in, hidden, bias), {1, 7});
      }
}

TEST_CASE("Rnn: two tokens by hand, under PyTorch's names", "[layers]") {
  fw::Rnn<double> layer(1, 2);
  layer.weight_ih << 0.5, -1;
  layer.weight_hh << 0, 2, 1, 0;
  layer.bias_ih << 0.25, 0;
  layer.bias_hh << 0, 0.5;
  Eigen::MatrixXd x(1, 2), y(2, 2), expected(2, 2);
  x << 1, -2;
  const double a = std::tanh(0.75), b = std::tanh(-0.5);
  expected << a, std::tanh(-0.75 + 2 * b), b, std::tanh(2.5 + a);
  auto state = layer.initial_state();
  fw::Rnn<double>::Trace trace;
  layer.forward(state, x, y, trace);
  CHECK(largest_entry(y - expected) <= 1e-15);
  CHECK(state.hidden == y.col(1));
  CHECK(parameter_names(layer) == pytorch_names);
  CHECK(parameter_names(fw::Rnn<double>(1, 2, false)) == "weight_ih_l0\nweight_hh_l0\n");
  CHECK_THROWS_WITH(fw::Rnn<double>(0, 2), "Rnn: in is 0, expected at least 1");
  CHECK_THROWS_WITH(fw::Rnn<double>(1, 0), "Rnn: hidden is 0, expected at least 1");
  fw::Rnn<double>::State other{Eigen::MatrixXd::Zero(3, 1)};
  CHECK_THROWS_WITH(layer.forward(other, x, y, trace),
                    "Rnn: hidden in the state has 3 rows, the layer expects 2");
}

TEST_CASE("Rnn: ReLU units with identity weights sum their inputs", "[layers]") {
  fw::Rnn<double, fw::Relu> layer(2, 2);
  fw::Random random(1);
  fw::initialise(layer, random);
  layer.start_at_identity();
  layer.weight_ih.setIdentity();
  Eigen::MatrixXd x(2, 4), y(2, 4), expected(2, 4);
  x << 1, 2, 0, 0.5, -1, 3, -1, 0;
  expected << 1, 3, 3, 3.5, 0, 3, 2, 2;
  auto state = layer.initial_state();
  fw::Rnn<double, fw::Relu>::Trace trace;
  layer.forward(state, x, y, trace);
  CHECK(y == expected);
}

TEST_CASE("Lstm: gradients, streaming, refusals at odd sizes", "[layers]") {
  for (Index in : {1, 3, 17})
    for (Index hidden : {1, 5, 20})
      for (bool bias : {false, true})
        check_layer(fw::Lstm<double>(in, hidden, bias), fw::Lstm<Complex>(in, hidden, bias),
                    {1, 7});
}

TEST_CASE("Lstm: two tokens by hand, the gates in PyTorch's order", "[layers]") {
  fw::Lstm<double> layer(1, 1);
  layer.weight_ih << 0.5, -1, 2, 1;  // input, forget, cell, output
  layer.weight_hh << 1, 0.5, -1, 3;
  layer.bias_ih << 0.1, 1, 0, -0.5;
  layer.bias_hh << 0, 0, 0.2, 0;
  const auto step = [](double x, double& h, double& c) {
    const double i = logistic(0.5 * x + h + 0.1), f = logistic(-x + 0.5 * h + 1);
    const double g = std::tanh(2 * x - h + 0.2), o = logistic(x + 3 * h - 0.5);
    c = f * c + i * g;
    return h = o * std::tanh(c);
  };
  Eigen::MatrixXd x(1, 2), y(1, 2);
  x << 1, -0.5;
  auto state = layer.initial_state();
  fw::Lstm<double>::Trace trace;
  layer.forward(state, x, y, trace);
  double h = 0, c = 0;
  CHECK(y(0, 0) == Catch::Approx(step(1, h, c)).epsilon(1e-15));
  CHECK(y(0, 1) == Catch::Approx(step(-0.5, h, c)).epsilon(1e-15));
  CHECK(state.cell(0, 0) == Catch::Approx(c).epsilon(1e-15));
  CHECK(parameter_names(layer) == pytorch_names);
  fw::Lstm<double>::State other{Eigen::MatrixXd::Zero(1, 1), Eigen::MatrixXd::Zero(2, 1)};
  CHECK_THROWS_WITH(layer.forward(other, x, y, trace),
                    "Lstm: cell in the state has 2 rows, the layer expects 1");
}

// A trace with the same number of tokens from a larger layer.
template <class Layer> void refuses_a_foreign_trace() {
  const Layer layer(2, 3), larger(2, 5);
  const Eigen::MatrixXd x = Eigen::MatrixXd::Random(2, 4);
  Eigen::MatrixXd y(5, 4), dx(2, 4);
  auto state = larger.initial_state();
  typename Layer::Trace trace;
  larger.forward(state, x, y, trace, fw::Pass::train);
  Layer grad = layer;
  const Eigen::MatrixXd dy = y.topRows(3);
  CHECK_THROWS_WITH(
      layer.backward(x, trace, dy, dx, grad),
      Catch::Matchers::ContainsSubstring("the trace has 5 rows, the layer expects 3"));
}

TEST_CASE("Recurrent layers: a trace of another layer is refused", "[layers]") {
  refuses_a_foreign_trace<fw::Rnn<double>>();
  refuses_a_foreign_trace<fw::Lstm<double>>();
}

TEST_CASE("Recurrent layers: initialised uniformly in ±1/√R", "[layers]") {
  fw::Lstm<float> layer(50, 100);
  fw::Random random(1);
  fw::initialise(layer, random);
  CHECK(layer.weight_hh.cwiseAbs().maxCoeff() <= 0.1f);
  CHECK(layer.bias_hh.cwiseAbs().maxCoeff() <= 0.1f);
  // The mean square of 40000 uniform numbers is 0.01/3 ± 1.5e-5.
  CHECK(layer.weight_hh.squaredNorm() / 40000 == Catch::Approx(0.01 / 3).epsilon(0.025));
  CHECK(layer.weight_ih.squaredNorm() / 20000 == Catch::Approx(0.01 / 3).epsilon(0.035));
}
