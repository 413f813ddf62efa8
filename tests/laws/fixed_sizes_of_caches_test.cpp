#include <fastweights/memories/attention/key_value_cache.hpp>
#include <fastweights/memories/rules/mamba3_mimo.hpp>

#include "support/catch.hpp"
#include "support/laws.hpp"

/// \file
/// As fixed_sizes_test.cpp, for a cache and for several columns per token.

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

}  // namespace
