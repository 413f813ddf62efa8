#include <fastweights/math/gelu.hpp>

#include "support/catch.hpp"
#include "support/largest_entry.hpp"

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

TEST_CASE("Gelu: x Φ(x) to the last digits in double", "[core]") {
  // Φ from tables of the normal distribution.
  CHECK(value_at<fw::Gelu>(1) == Catch::Approx(0.84134474606854293).epsilon(1e-15));
  CHECK(value_at<fw::Gelu>(-1) == Catch::Approx(-0.15865525393145707).epsilon(1e-15));
  CHECK(value_at<fw::Gelu>(0.5) == Catch::Approx(0.34573123063700656).epsilon(1e-15));
  CHECK(value_at<fw::Gelu>(-6) == Catch::Approx(-6 * 9.8658764503769814e-10).epsilon(1e-14));
  CHECK(value_at<fw::Gelu>(0) == 0);
  CHECK(value_at<fw::Gelu>(40) == 40);
  CHECK(value_at<fw::Gelu>(-40) == 0);
}

TEST_CASE("Silu: x σ(x), also if e^−x overflows", "[core]") {
  CHECK(value_at<fw::Silu>(1) == Catch::Approx(0.73105857863000490).epsilon(1e-15));
  CHECK(value_at<fw::Silu>(-2) == Catch::Approx(-0.23840584404423515).epsilon(1e-15));
  CHECK(value_at<fw::Silu>(-1000) == 0);
  CHECK(value_at<fw::Silu>(1000) == 1000);
}

TEST_CASE("Gelu and Silu: the float forms have their documented errors", "[core]") {
  const auto [gelu, dgelu] = float_error<fw::Gelu>();
  CHECK(gelu <= 5e-7);
  CHECK(dgelu <= 5e-7);
  const auto [silu, dsilu] = float_error<fw::Silu>();
  CHECK(silu <= 5e-7);
  CHECK(dsilu <= 2e-6);  // x (1 − σ(x)) near x = 16, where 1 − σ(x) has one bit left
}

}  // namespace
