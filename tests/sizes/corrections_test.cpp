#include <fastweights/memories/rules/comba.hpp>
#include <fastweights/memories/rules/gated_delta_product.hpp>
#include <fastweights/memories/rules/gated_delta_rule_2.hpp>
#include <fastweights/memories/rules/low_rank_rule.hpp>
#include <fastweights/memories/rules/preconditioned_delta_rule.hpp>

#include "kernels/compare.hpp"

namespace {

TEST_CASE("corrections: sizes fixed at compile time", "[kernels]") {
  check(fw::Comba<double, 5, 3>(), 9);
  check(fw::GatedDeltaRule2<double, 8, 8>(), 9);
  check(fw::GatedDeltaProduct<double, 2, 4, 12>(), 9);
  check(fw::LowRankRule<double, 16, 16>(), 9);
  check(fw::PreconditionedDeltaRule<double, 7, 1>(), 9);
}

}  // namespace
