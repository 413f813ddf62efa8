#include <fastweights/memories/adaptors/cached_segments.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>

#include "support/catch.hpp"
#include "support/laws.hpp"

/// \file
/// As fixed_sizes_test.cpp, for an adaptor.

namespace {

using fw::make_memory;
using laws::fixed_is_dynamic;

TEST_CASE("fixed sizes: a memory that keeps segments", "[laws][fixed_sizes]") {
  using Delta = fw::DeltaRule<double, 5, 3>;
  fixed_is_dynamic(
      fw::CachedSegments<Delta, 2>(Delta(), 2, {.segment = 3, .capacity = 2}),
      make_memory<double>("CachedDeltaRule",
                          {5, 3, {{"pooled_size", 2}, {"segment", 3}, {"capacity", 2}}}));
}

}  // namespace
