#include <fastweights/memories/adaptors/cached_segments.hpp>
#include <fastweights/memories/attention/key_value_cache.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/mamba3_mimo.hpp>

#include "support/catch.hpp"
#include "support/laws.hpp"

/// \file
/// As fixed_sizes_test.cpp, for memories whose state is more than a matrix of one column a token. A
/// source of its own, because every memory here is compiled with all of its forms.

namespace {

using fw::make_memory;
using laws::fixed_is_dynamic;

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
