#include <fastweights/memories/adaptors/cached_segments.hpp>
#include <fastweights/memories/attention/key_value_cache.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>
#include <fastweights/memories/rules/mamba3_mimo.hpp>

#include "support/catch.hpp"
#include "support/laws.hpp"

/// \file
/// Memories whose sizes are fixed at compile time obey the laws, and give the numbers of the same
/// memories with sizes at run time.

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
TEST_CASE("fixed sizes: several columns per token", "[laws][fixed_sizes]") {
  fixed_is_dynamic(fw::Mamba3Mimo<double, 5, 1, 3>(),
                   make_memory<double>("Mamba3Mimo", {5, 1, {{"ranks", 3}}}));
}
TEST_CASE("fixed sizes: a cache of tokens", "[laws][fixed_sizes]") {
  fixed_is_dynamic(fw::KeyValueCache<double, 5, 3>({}, {.capacity = 7}),
                   make_memory<double>("KeyValueCache", {5, 3, {{"capacity", 7}}}));
}
TEST_CASE("fixed sizes: a memory that keeps segments", "[laws][fixed_sizes]") {
  using Delta = fw::DeltaRule<double, 5, 3>;
  fixed_is_dynamic(
      fw::CachedSegments<Delta, 2>(Delta(), 2, {.segment = 3, .capacity = 2}),
      make_memory<double>("CachedDeltaRule",
                          {5, 3, {{"pooled_size", 2}, {"segment", 3}, {"capacity", 2}}}));
}

}  // namespace
