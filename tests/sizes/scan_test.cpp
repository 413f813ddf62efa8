#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/gated_linear_attention.hpp>
#include <fastweights/memories/rules/hebbian.hpp>

#include "kernels/compare.hpp"

TEST_CASE("kernels: small sizes fixed at compile time", "[kernels]") {
  check(fw::DeltaRule<double, 5>(), 5);
  check(fw::HebbianMemory<double, 5, 6>(), 5);
  check(fw::GatedLinearAttention<float, 7, 12>(), 5);
  check(fw::GatedDeltaRule<float, 4, 11, fw::KeyValueBetaVectorDecay>(), 5);
}
