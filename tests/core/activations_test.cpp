#include <cmath>
#include <complex>
#include <fastweights/math/gelu.hpp>
#include <limits>
#include <unsupported/Eigen/AutoDiff>

#include "support/catch.hpp"

namespace {

// The largest relative error of `values` for the numbers from -20 to 20.
template <class S, class F, class G> double worst_error(const F& values, const G& exact) {
  using Array = Eigen::Array<S, Eigen::Dynamic, 1>;
  const Array x = Array::LinSpaced(40001, S(-20), S(20)), y = values(x);
  double worst = 0;
  for (Eigen::Index i = 0; i < x.size(); ++i) {
    if (x[i] == S(0)) continue;
    const long double expected = exact(static_cast<long double>(x[i]));
    const auto error = static_cast<double>(std::abs((y[i] - expected) / expected));
    worst = std::isnan(error) ? 1e300 : std::max(worst, error);
  }
  return worst;
}

template <class S> void check_activations(double limit) {
  const auto silu = [](const auto& x) {
    Eigen::Matrix<S, Eigen::Dynamic, 1> y(x.size());
    y.setOnes();
    fw::detail::multiply_by_silu(x.matrix(), y);
    return y.array().eval();
  };
  CHECK(worst_error<S>(silu, [](long double x) { return x / (1 + std::exp(-x)); }) <= limit);
  CHECK(worst_error<S>([](const auto& x) { return fw::detail::softplus_of(x).eval(); },
                       [](long double x) {
                         return std::max(x, 0.0L) + std::log1p(std::exp(-std::abs(x)));
                       }) <= limit);
}

TEST_CASE("silu and softplus of arrays: relative error", "[core]") {
  check_activations<float>(1e-6);
  check_activations<double>(1e-15);
}

// From −20 to 20, far beyond, and NaN where a packet begins and behind the last one.
template <class S> Eigen::Array<S, Eigen::Dynamic, 1> numbers() {
  constexpr int count = 4001;
  Eigen::Array<S, Eigen::Dynamic, 1> x(count + 8);
  x.head(count) = Eigen::Array<S, Eigen::Dynamic, 1>::LinSpaced(count, S(-20), S(20));
  x.segment(count, 6) << S(-100), S(100), S(-1000), S(1000), std::numeric_limits<S>::lowest(),
      std::numeric_limits<S>::max();
  x[0] = x[count + 6] = x[count + 7] = std::numeric_limits<S>::quiet_NaN();
  return x;
}

// The functions of arrays are those of numbers, and keep NaN.
template <class S, class F> void check_arrays(double limit) {
  using fw::detail::activated, fw::detail::activated_derivative;
  using Array = Eigen::Array<S, Eigen::Dynamic, 1>;
  const Array x = numbers<S>(), y = activated(F{}, x), slopes = activated_derivative(F{}, x),
              slopes_of_y = activated_derivative(F{}, x, y);
  for (Eigen::Index i = 0; i < x.size(); ++i) {
    const auto each = static_cast<double>(x[i]);
    INFO(each);
    if (std::isnan(each)) {
      CHECK(std::isnan(y[i]));
      continue;
    }
    const double value = F{}.value(each), slope = F{}.derivative(each);
    CHECK(std::abs(double(y[i]) - value) <= limit * std::max(1.0, std::abs(value)));
    CHECK(std::abs(double(slopes[i]) - slope) <= limit);
    CHECK(std::abs(double(slopes_of_y[i]) - slope) <= limit);
  }
}
// Of GeluTanh, 1 − tanh² is multiplied by up to 40.
constexpr double near = 1e-13;

// The derivative is the complex step, of numbers and of arrays.
template <class F> void check_complex_step() {
  using Array = Eigen::Array<std::complex<double>, Eigen::Dynamic, 1>;
  constexpr double step = 1e-30;
  const Array x = Array::LinSpaced(400, {-12, step}, {12, step}), y = fw::detail::activated(F{}, x);
  for (Eigen::Index i = 0; i < x.size(); ++i) {
    INFO(x[i].real());
    const double slope = F{}.derivative(x[i].real());
    CHECK(std::abs(y[i].real() - F{}.value(x[i].real())) <= near);
    CHECK(std::abs(y[i].imag() / step - slope) <= near);
    CHECK(std::abs(F{}.derivative(x[i]).real() - slope) <= near);
  }
}
// So is that of a scalar of automatic differentiation.
template <class F> void check_automatic_differentiation() {
  using Scalar = Eigen::AutoDiffScalar<Eigen::Matrix<double, 1, 1>>;
  for (double x = -12; x < 12; x += 0.37) {
    INFO(x);
    const Scalar y = F{}.value(Scalar(x, 1, 0));
    CHECK(std::abs(y.value() - F{}.value(x)) <= near);
    CHECK(std::abs(y.derivatives()[0] - F{}.derivative(x)) <= near);
  }
}
template <class... F> void check_all() {
  (check_arrays<float, F>(5e-6), ...);  // Eigen's tanh in float is 1e-6 off near 1
  (check_arrays<double, F>(4e-15), ...);
  (check_complex_step<F>(), ...);
  (check_automatic_differentiation<F>(), ...);
}

TEST_CASE("activations of arrays are those of their entries, and their derivatives are exact",
          "[core]") {
  check_all<fw::Identity, fw::Tanh, fw::Sigmoid, fw::Relu, fw::Softplus, fw::LogSigmoid,
            fw::GeluTanh>();
}

}  // namespace
