#include <fastweights/memories/rules/delta_rule.hpp>

#include "kernels/compare.hpp"

TEST_CASE("kernels: small sizes of the delta rule, fixed at compile time", "[kernels]") {
  check(fw::DeltaRule<float, 3>(), 5);
  check(fw::DeltaRule<float, 5>(), 5);
  check(fw::DeltaRule<float, 7>(), 5);
  check(fw::DeltaRule<float, 13>(), 5);
}
