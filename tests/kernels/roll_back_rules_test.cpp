#include <fastweights/memories/rules/comba.hpp>
#include <fastweights/memories/rules/gated_delta_product.hpp>
#include <fastweights/memories/rules/gated_delta_rule_2.hpp>
#include <fastweights/memories/rules/hebbian.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>
#include <fastweights/memories/rules/low_rank_rule.hpp>

#include "kernels/roll_back.hpp"

// roll_back_test.cpp has the other rules. One source of all takes a minute to compile.
namespace {

TEST_CASE("roll back: drafts leave no trace in rules of more kinds", "[deferred]") {
  for (const auto& [dk, dv] : {std::pair<Index, Index>{1, 1}, {3, 17}, {17, 3}, {65, 63}}) {
    const fw::Sizes<Dynamic, Dynamic> sizes{dk, dv};
    all_rings(fw::LinearAttention<double>(sizes));
    all_rings(fw::Comba<double>(sizes));
    all_rings(fw::GatedDeltaProduct<double, 3>(sizes));
    all_rings(fw::GatedDeltaRule2<double>(sizes));
    all_rings(fw::LowRankRule<double>(sizes));
    for (const double decay : {0.97, 0.0, -0.3})
      all_rings(fw::HebbianMemory<double>(sizes, {decay, 0.7}));
  }
}

}  // namespace
