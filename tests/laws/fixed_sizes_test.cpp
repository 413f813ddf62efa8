#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>

#include "support/catch.hpp"
#include "support/laws.hpp"

/// \file
/// Memories whose sizes are fixed at compile time obey the laws, and give the numbers of the same
/// memories with sizes at run time. A source has two or three of them, because each is compiled
/// with all of its forms.

namespace {

using fw::make_memory;
using laws::fixed_is_dynamic;

TEST_CASE("fixed sizes: the delta rule", "[laws][fixed_sizes]") {
  fixed_is_dynamic(fw::DeltaRule<double, 3, 17>(), make_memory<double>("DeltaRule", {3, 17}));
}
TEST_CASE("fixed sizes: the gated delta rule with one decay per key row", "[laws][fixed_sizes]") {
  fixed_is_dynamic(fw::GatedDeltaRule<double, 17, 3, fw::KeyValueBetaVectorDecay>(),
                   make_memory<double>("KimiDeltaAttention", {17, 3}));
}
TEST_CASE("fixed sizes: normalised linear attention", "[laws][fixed_sizes]") {
  fixed_is_dynamic(fw::LinearAttention<double, 17, 3, fw::AttentionNormaliser<double>>(),
                   make_memory<double>("NormalisedLinearAttention", {17, 3}), true);
}

}  // namespace
