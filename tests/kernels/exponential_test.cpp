#include <cmath>
#include <fastweights/kernels/simd/exponential.hpp>
#include <limits>

#include "support/catch.hpp"

namespace {

// In all places of two packets.
float exponential(float x) {
  auto rows = fw::detail::Rows<float, 2>::all(x);
  fw::detail::exponentiate(rows);
  float all[decltype(rows)::size];
  rows.store(all);
  for (const float each : all) REQUIRE((each == all[0] || std::isnan(all[0])));
  return all[0];
}

// In units of rounding, 2^−24 of the exact value.
double worst_error(float from, float to, float step) {
  double worst = 0;
  for (float x = from; x < to; x += step) {
    const double exact = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::abs(exponential(x) - exact) / exact * std::ldexp(1, 24));
  }
  return worst;
}

TEST_CASE("kernels: exponentials of packets are exact to two units of rounding, near 0 to one",
          "[kernels]") {
  CHECK(worst_error(-87.3f, 88.3f, 0.0371f) <= 2);
  CHECK(worst_error(-0.3f, 0.3f, 0.000371f) <= 1.5);
  CHECK(worst_error(-1e-3f, 0.0f, 1.1e-6f) <= 1);
  CHECK(worst_error(88.3f, 88.72f, 0.00371f) <= 100);
}

TEST_CASE("kernels: exponentials of zeros, infinities, NaN, and beyond the range", "[kernels]") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  CHECK(exponential(0.0f) == 1);
  CHECK(exponential(-0.0f) == 1);
  CHECK(exponential(-infinity) == 0);
  CHECK(exponential(infinity) == infinity);
  CHECK(std::isnan(exponential(std::numeric_limits<float>::quiet_NaN())));
  CHECK(exponential(-1000.0f) == 0);
  CHECK(exponential(89.0f) == infinity);
  CHECK(exponential(88.72f) < infinity);
  CHECK(exponential(-87.0f) > 0);
}

}  // namespace
