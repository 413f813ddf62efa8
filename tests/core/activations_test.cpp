#include <cmath>
#include <fastweights/math/activations.hpp>

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

}  // namespace
