#include <fastweights/memories/rules/gated_delta_rule.hpp>

#include "kernels/roll_back.hpp"

namespace {

template <int Dk, int Dv> void fixed_sizes() {
  all_rings(fw::GatedDeltaRule<double, Dk, Dv>());
  all_rings(fw::GatedDeltaRule<double, Dk, Dv, fw::KeyValueBetaVectorDecay>());
}

TEST_CASE("roll back: drafts leave no trace in fixed sizes, with decays", "[deferred]") {
  fixed_sizes<1, 1>();
  fixed_sizes<17, 3>();
}

}  // namespace
