#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/gated_linear_attention.hpp>
#include <fastweights/memories/rules/hebbian.hpp>
#include <fastweights/memories/rules/longhorn.hpp>
#include <fastweights/memories/rules/selective_scan.hpp>
#include <fastweights/memories/rules/titans_memory.hpp>

#include "kernels/compare.hpp"

namespace {

TEST_CASE("kernels: small sizes fixed at compile time", "[kernels]") {
  check(fw::DeltaRule<float, 3>(), 5);
  check(fw::DeltaRule<float, 5>(), 5);
  check(fw::DeltaRule<float, 7>(), 5);
  check(fw::DeltaRule<float, 13>(), 5);
  check(fw::DeltaRule<double, 5>(), 5);
  check(fw::HebbianMemory<double, 5, 6>(), 5);
  check(fw::GatedLinearAttention<float, 7, 12>(), 5);
  check(fw::GatedDeltaRule<float, 4, 11, fw::KeyValueBetaVectorDecay>(), 5);
}

TEST_CASE("row scan: sizes fixed at compile time", "[kernels]") {
  check(fw::TitansMemory<double, 5, 3>(), 70);
  check(fw::Longhorn<double, 8, 1>(), 70);
  check(fw::SelectiveScan<float, 16, 64>(), 70);
}

}  // namespace
