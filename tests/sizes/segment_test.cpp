#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>

#include "kernels/segments.hpp"

namespace {

TEST_CASE("segments: sizes fixed at compile time", "[kernels]") {
  check_segments(fw::DeltaRule<double, 1, 1>(), 9);
  check_segments(fw::DeltaRule<double, 3, 17>(), 9);
  check_segments(fw::GatedDeltaRule<double, 64, 64>(), 9);
  check_segments(fw::GatedDeltaRule<double, 1, 5, fw::KeyValueBetaVectorDecay>(), 9);
}

}  // namespace
