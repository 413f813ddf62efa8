#include <fastweights/layers/projections/feed_forward.hpp>
#include <fastweights/layers/projections/swiglu.hpp>

#include "support/layer_checks.hpp"

using fw::Index;
using layer_checks::check_layer;
using layer_checks::Complex;
using layer_checks::parameter_names;

namespace {

// The worst errors of an elementwise function and of its derivative in float on [−20, 20]. The
// error of the function is relative for values above 1.
template <class F> std::pair<double, double> float_error() {
  const Eigen::MatrixXd x = Eigen::VectorXd::LinSpaced(400001, -20, 20);
  const Eigen::MatrixXf rounded = x.cast<float>();
  const Eigen::MatrixXd exact_x = rounded.cast<double>();
  Eigen::MatrixXd exact(x.rows(), 1), dexact = Eigen::MatrixXd::Ones(x.rows(), 1);
  Eigen::MatrixXf y(x.rows(), 1), dy = Eigen::MatrixXf::Ones(x.rows(), 1);
  F::value(exact_x, exact);
  F::vjp(exact_x, dexact);
  F::value(rounded, y);
  F::vjp(rounded, dy);
  const Eigen::ArrayXXd error = (y.cast<double>() - exact).array() / exact.array().abs().max(1.0);
  return {largest_entry(error), largest_entry(dy.cast<double>() - dexact)};
}

template <class F> double value_at(double x) {
  Eigen::MatrixXd in = Eigen::MatrixXd::Constant(1, 1, x), out(1, 1);
  F::value(in, out);
  return out(0, 0);
}

}  // namespace

TEST_CASE("FeedForward: gradients, streaming, refusals at odd sizes", "[layers]") {
  for (Index d : {1, 3, 17})
    for (bool bias : {false, true})
      check_layer(fw::FeedForward<double>(d, 2 * d + 1, bias),
                  fw::FeedForward<Complex>(d, 2 * d + 1, bias), {1, 5});
  check_layer(fw::FeedForward<double, fw::Silu>(3, 5), fw::FeedForward<Complex, fw::Silu>(3, 5),
              {4});
  CHECK(parameter_names(fw::FeedForward<double>(2, 4)) ==
        "up.weight\nup.bias\ndown.weight\ndown.bias\n");
}

TEST_CASE("SwiGlu: gradients, streaming, refusals at odd sizes", "[layers]") {
  for (Index d : {1, 3, 17})
    for (bool bias : {false, true})
      check_layer(fw::SwiGlu<double>(d, 2 * d + 1, bias), fw::SwiGlu<Complex>(d, 2 * d + 1, bias),
                  {1, 5});
  CHECK(parameter_names(fw::SwiGlu<double>(2, 4)) == "gate.weight\nup.weight\ndown.weight\n");
}

TEST_CASE("Gelu: x Φ(x) to the last digits in double", "[layers]") {
  // Φ from tables of the normal distribution.
  CHECK(value_at<fw::Gelu>(1) == Catch::Approx(0.84134474606854293).epsilon(1e-15));
  CHECK(value_at<fw::Gelu>(-1) == Catch::Approx(-0.15865525393145707).epsilon(1e-15));
  CHECK(value_at<fw::Gelu>(0.5) == Catch::Approx(0.34573123063700656).epsilon(1e-15));
  CHECK(value_at<fw::Gelu>(-6) == Catch::Approx(-6 * 9.8658764503769814e-10).epsilon(1e-14));
  CHECK(value_at<fw::Gelu>(0) == 0);
  CHECK(value_at<fw::Gelu>(40) == 40);
  CHECK(value_at<fw::Gelu>(-40) == 0);
}

TEST_CASE("Silu: x σ(x), also if e^−x overflows", "[layers]") {
  CHECK(value_at<fw::Silu>(1) == Catch::Approx(0.73105857863000490).epsilon(1e-15));
  CHECK(value_at<fw::Silu>(-2) == Catch::Approx(-0.23840584404423515).epsilon(1e-15));
  CHECK(value_at<fw::Silu>(-1000) == 0);
  CHECK(value_at<fw::Silu>(1000) == 1000);
}

TEST_CASE("Gelu and Silu: the float forms have their documented errors", "[layers]") {
  const auto [gelu, dgelu] = float_error<fw::Gelu>();
  CHECK(gelu <= 5e-7);
  CHECK(dgelu <= 5e-7);
  const auto [silu, dsilu] = float_error<fw::Silu>();
  CHECK(silu <= 5e-7);
  CHECK(dsilu <= 2e-6);  // x (1 − σ(x)) near x = 16, where 1 − σ(x) has one bit left
}

TEST_CASE("FeedForward: float agrees with double", "[layers]") {
  fw::Random random(3);
  fw::FeedForward<double> exact(65, 300);
  fw::initialise(exact, random);
  fw::FeedForward<float> layer(65, 300);
  layer_checks::copy_parameters(exact, layer);
  const Eigen::MatrixXd x = layer_checks::random_matrix(65, 9, random);
  Eigen::MatrixXd y(65, 9), dx(65, 9);
  Eigen::MatrixXf yf(65, 9), dxf(65, 9);
  fw::Nothing none;
  fw::FeedForward<double>::Trace trace;
  fw::FeedForward<float>::Trace tracef;
  auto grad = exact;
  auto gradf = layer;
  exact.forward(none, x, y, trace, fw::Pass::train);
  exact.backward(x, trace, y, dx, grad);
  layer.forward(none, x.cast<float>().eval(), yf, tracef, fw::Pass::train);
  layer.backward(x.cast<float>().eval(), tracef, y.cast<float>().eval(), dxf, gradf);
  CHECK(layer_checks::relative_difference(yf.cast<double>(), y) <= 2e-6);
  CHECK(layer_checks::relative_difference(dxf.cast<double>(), dx) <= 2e-6);
}
