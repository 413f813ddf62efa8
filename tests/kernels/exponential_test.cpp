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
  for (const float each : all) CHECK((each == all[0] || std::isnan(all[0])));
  return all[0];
}

TEST_CASE("kernels: exponentials of packets are exact to two units of rounding", "[kernels]") {
  double worst = 0;
  for (float x = -87.3f; x < 88.7f; x += 0.00371f) {
    const double exact = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::abs(exponential(x) - exact) / exact);
  }
  CHECK(worst <= 2 * std::ldexp(1, -24));
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
