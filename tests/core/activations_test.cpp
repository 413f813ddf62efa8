#include <cmath>
#include <fastweights/math/gelu.hpp>
#include <limits>

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

// The functions of arrays are those of numbers, and keep NaN.
template <class S, class F> void check_arrays(double limit) {
  using fw::detail::activated, fw::detail::activated_derivative;
  using Array = Eigen::Array<S, Eigen::Dynamic, 1>;
  Array x = Array::LinSpaced(4001, S(-20), S(20));
  x[0] = std::numeric_limits<S>::quiet_NaN();
  const Array y = activated(F{}, x), slopes = activated_derivative(F{}, x),
              slopes_of_y = activated_derivative(F{}, x, y);
  CHECK(std::isnan(y[0]));
  for (Eigen::Index i = 1; i < x.size(); ++i) {
    const auto each = static_cast<double>(x[i]);
    const double value = F{}.value(each), slope = F{}.derivative(each);
    INFO(each);
    CHECK(std::abs(double(y[i]) - value) <= limit * std::max(1.0, std::abs(value)));
    CHECK(std::abs(double(slopes[i]) - slope) <= limit);
    CHECK(std::abs(double(slopes_of_y[i]) - slope) <= limit);
  }
}
template <class... F> void check_all_arrays() {
  (check_arrays<float, F>(5e-6), ...);  // Eigen's tanh in float is 1e-6 off near 1
  (check_arrays<double, F>(4e-15), ...);
}

TEST_CASE("activations of arrays are those of their entries", "[core]") {
  check_all_arrays<fw::Identity, fw::Tanh, fw::Sigmoid, fw::Relu, fw::Softplus, fw::LogSigmoid,
                   fw::GeluTanh>();
}

}  // namespace
