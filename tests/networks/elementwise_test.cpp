#include <fastweights/networks/operations/clamp.hpp>
#include <fastweights/networks/operations/constants.hpp>

#include "networks/operation_checks.hpp"

namespace {

using namespace fw::networks;
using namespace operation_checks;
using X = Value<double>;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("functions of one value: gradients and streaming", "[networks]") {
  check_operation([](const auto& x) { return exp(x); });
  check_operation([](const auto& x) { return sigmoid(x); });
  check_operation([](const auto& x) { return silu(x); });
  check_operation([](const auto& x) { return softplus(x); });
  check_operation([](const auto& x) { return log_sigmoid(x); });
  check_operation([](const auto& x) { return tanh(x); });
  check_operation([](const auto& x) { return relu(x); });
  check_operation([](const auto& x) { return square(x); });
  check_operation([](const auto& x) { return gelu(x); });
  check_operation([](const auto& x) { return gelu_tanh(x); });
  check_operation([](const auto& x) { return affine(-1.5, x, 0.25); });
  check_operation([](const auto& x) { return 2.0 * x + (1.0 - x) + -x; });
  check_operation([](const auto& x) { return soft_cap(x, 0.7); });
  check_operation([](const auto& x) { return clamp(x, -0.51, 0.77); });
  check_operation([](const auto& x) { return root_of_complement(-softplus(x)); });
}

void check_value(const Function& f, const std::function<double(double)>& exact) {
  const Eigen::RowVectorXd x = Eigen::RowVectorXd::LinSpaced(41, -30, 30);
  check_equal(value_of(f, x), x.unaryExpr(exact), 1e-14);
}

TEST_CASE("functions of one value are those of their definitions", "[networks]") {
  const auto logistic = [](double x) { return 1 / (1 + std::exp(-x)); };
  check_value([](const auto& x) { return exp(0.1 * x); },
              [](double x) { return std::exp(0.1 * x); });
  check_value([](const auto& x) { return sigmoid(x); }, logistic);
  check_value([](const auto& x) { return silu(x); }, [&](double x) { return x * logistic(x); });
  check_value([](const auto& x) { return softplus(x); },
              [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); });
  check_value([](const auto& x) { return log_sigmoid(x); },
              [](double x) { return std::min(x, 0.0) - std::log1p(std::exp(-std::abs(x))); });
  check_value([](const auto& x) { return tanh(x); }, [](double x) { return std::tanh(x); });
  check_value([](const auto& x) { return relu(x); }, [](double x) { return std::max(x, 0.0); });
  check_value([](const auto& x) { return square(x); }, [](double x) { return x * x; });
  check_value([](const auto& x) { return gelu(x); },
              [](double x) { return x / 2 * std::erfc(-x / std::sqrt(2)); });
  check_value([](const auto& x) { return gelu_tanh(x); },
              [](double x) {
                return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
              });
  check_value([](const auto& x) { return soft_cap(x, 4); },
              [](double x) { return 4 * std::tanh(x / 4); });
  check_value([](const auto& x) { return clamp(x, -2, 3); },
              [](double x) { return std::clamp(x, -2.0, 3.0); });
}

TEST_CASE("functions of one value are finite for any finite number", "[networks]") {
  const auto all = [](const auto& x) {
    return concatenate<ScalarOf<decltype(x)>>(
        {sigmoid(x), silu(x), softplus(x), log_sigmoid(x), tanh(x), gelu(x), gelu_tanh(x)});
  };
  Matrix<double> x(2, 1);
  x << 1e300, -1e300;
  CHECK(value_of(all, x).allFinite());
  CHECK(input_gradient(network_of(2, all), x).allFinite());
}

TEST_CASE("the root of 1 − e^2x keeps its digits near 0, where its slope is bounded",
          "[networks]") {
  const Net network = network_of(4, [](const auto& x) { return root_of_complement(x); });
  const Eigen::Vector4d x(-400, -0.5, -1e-12, 0);
  check_equal(value_of([](const auto& v) { return root_of_complement(v); }, x),
              Eigen::Vector4d(1, std::sqrt(1 - std::exp(-1)), std::sqrt(2e-12), 0), 1e-15);
  const double slope = -std::exp(-1) / std::sqrt(1 - std::exp(-1));
  check_equal(input_gradient(network, x), Eigen::Vector4d(0, slope, -2000, -2000), 1e-11);
}

TEST_CASE("the gradient of a clamp passes at its limits", "[networks]") {
  const Net network = network_of(4, [](const auto& x) { return clamp(x, -1, 2); });
  CHECK(input_gradient(network, Eigen::Vector4d(-1.5, -1, 2, 2.5)) == Eigen::Vector4d(0, 1, 1, 0));
  CHECK_THROWS_WITH(network_of(1, [](const auto& v) { return clamp(v, 1, 0); }),
                    ContainsSubstring("lower limit"));
}

// The second value has all rows, one for each of three heads, or one.
TEST_CASE("sums, differences and products of two values", "[networks]") {
  for (const Index rows : {3, 17}) {
    const auto both = [rows](const auto& combined) {
      return [=](const auto& x) {
        const auto other = tanh(linear(x, "other", rows));
        return combined(x, other) + combined(other, x) + combined(x, other.rows_of(rows - 1, 1));
      };
    };
    check_operation(rows, both([](const auto& a, const auto& b) { return a + b; }));
    check_operation(rows, both([](const auto& a, const auto& b) { return a - b; }));
    check_operation(rows, both([](const auto& a, const auto& b) { return a * b; }));
  }
  const auto by_head = [](const auto& x) {
    const auto b = x.rows_of(3, 3);
    return x * b + (x - b) + (x + b);
  };
  check_operation(12, by_head);
  check_operation([](const auto& x) { return x * x + x; });  // one value twice
}

TEST_CASE("a constant belongs to all tokens", "[networks]") {
  check_operation([](const auto& x) {
    const auto w = parameter(*x.builder, "w", x.rows());
    return x * w + w + exp(w);
  });
  check_operation(12, [](const auto& x) {
    const auto by_head = parameter(*x.builder, "b", 3), all = parameter(*x.builder, "a", 1);
    return x * sigmoid(by_head) - all;
  });
  check_operation(3, [](const auto& x) {  // the first value may be the constant one
    return x + parameter(*x.builder, "w", 3) * x;
  });
  check_operation([](const auto& x) {
    return x * constants(*x.builder, std::vector<double>(std::size_t(x.rows()), 1.5));
  });
}

TEST_CASE("rows that do not fit are refused with the path of the module", "[networks]") {
  const auto build = [](const Function& f) {
    return network_of(6, [&](const auto& x) { return module("mlp", x, f); });
  };
  const auto refused = [&](const Function& f) {
    CHECK_THROWS_WITH(build(f), ContainsSubstring("mlp"));
    CHECK_THROWS_AS(build(f), std::invalid_argument);
  };
  refused([](const auto& x) { return x + x.rows_of(0, 4); });
  refused([](const auto& x) { return x.rows_of(0, 3) * x; });
  refused([](const auto& x) { return x.rows_of(3, 4); });
  refused([](const auto& x) { return x.rows_of(-1, 2); });
  refused([](const auto& x) { return x.rows_of(2, 0); });
  refused([](const auto& x) { return x.rows_of(1, std::numeric_limits<Index>::max()); });
  refused([](const auto& x) { return split<2>(x, {2, 3})[0]; });
  refused([](const auto& x) { return split<2>(x, {2, 5})[0]; });
}

}  // namespace
