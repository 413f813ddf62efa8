#include <fastweights/memories/adaptors/deferred.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>

#include "support/catch.hpp"
#include "support/laws.hpp"

/// \file
/// Deferred memories whose sizes are fixed at compile time.

namespace {

using fw::Deferred;
using fw::make_memory;
using laws::fixed_is_dynamic;

TEST_CASE("fixed sizes: a deferred memory", "[laws][fixed_sizes]") {
  using Kimi = fw::GatedDeltaRule<double, 1, 65, fw::KeyValueBetaVectorDecay>;
  fixed_is_dynamic(Deferred(fw::DeltaRule<double, 7, 1>()),
                   make_memory<double>("DeferredDeltaRule", {7, 1}));
  // Its last tokens can be taken back.
  fixed_is_dynamic(Deferred<Kimi, 8, double, 4>(Kimi()),
                   make_memory<double>("DeferredKimiDeltaAttention", {1, 65}));
}

}  // namespace
