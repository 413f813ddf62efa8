#include "support/relative_error.hpp"

#include <limits>

#include "support/catch.hpp"

/// \file
/// The errors that tests of published models and reference vectors measure.

namespace {

using Values = std::vector<double>;

double error_of(const Values& given, const Values& expected, double largest_of_all = 0) {
  return relative_error(given.data(), expected, largest_of_all);
}

TEST_CASE("errors are relative to the largest entry of the truth", "[relative_error]") {
  CHECK(error_of({2, 1e-3}, {2, 2e-3}) == Catch::Approx(5e-4));
  CHECK(error_of({1e-6, 0}, {2e-6, 0}, 1) == Catch::Approx(0.5));  // small, but no rounding
  CHECK(error_of({0.5}, {0}) == 0.5);
  CHECK(error_of({}, {}, 1) == 0);
}

// The gate of a router with one expert: its weight is 1 whatever the gate is.
TEST_CASE("a gradient that is 0 but for rounding is compared with that of the model",
          "[relative_error]") {
  const Values truth{3e-18, -1e-18}, ours{-2e-18, 4e-18};
  CHECK(error_of(ours, truth) > 1);
  CHECK(error_of(ours, truth, 0.25) == Catch::Approx(2e-17));
  CHECK(error_of({1e-3, 0}, truth, 0.25) == Catch::Approx(4e-3));  // a gradient that is wrong
  CHECK(error_of({1e-3, 0}, {0, 0}, 0.25) == Catch::Approx(4e-3));
}

TEST_CASE("NaN is no small error", "[relative_error]") {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  CHECK(error_of({nan, 1}, {1, 1}) == infinity);
  CHECK(error_of({1, nan}, {1e-20, 0}, 1) == infinity);
  CHECK(error_of({infinity}, {1}) == infinity);
}

}  // namespace
