#include <fastweights/memories/rules/gated_slot_attention.hpp>
#include <fastweights/memories/rules/hgrn.hpp>
#include <fastweights/memories/rules/mlstm.hpp>
#include <fastweights/memories/rules/normalised_gated_attention.hpp>
#include <fastweights/memories/rules/selective_scan.hpp>

#include "support/laws.hpp"

namespace {

using fw::KeyValueVectorDecay;
template <int Dk, int Dv>
using ByRow = fw::NormalisedGatedAttention<double, Dk, Dv, KeyValueVectorDecay>;

TEST_CASE("HGRN takes automatic differentiation", "[laws][hgrn]") {
  laws::takes_autodiff(fw::Hgrn<double>(4), false);
}
TEST_CASE("mLSTM takes automatic differentiation", "[laws][mlstm]") {
  laws::takes_autodiff(fw::Mlstm<double>({4, 3}), false);
}
TEST_CASE("gated slot attention takes automatic differentiation", "[laws][gated_slot_attention]") {
  laws::takes_autodiff(fw::GatedSlotAttention<double>({4, 3}, 2), false);
}
TEST_CASE("the selective scan takes automatic differentiation", "[laws][selective_scan]") {
  laws::takes_autodiff(fw::SelectiveScan<double>({4, 3}), false);
}
TEST_CASE("normalised gated attention takes other scalars and fixed sizes",
          "[laws][normalised_gated_attention]") {
  laws::other_forms(fw::NormalisedGatedAttention<double, 4, 3>(),
                    fw::NormalisedGatedAttention<double>({4, 3}), true);
  laws::other_forms(ByRow<4, 3>(), ByRow<-1, -1>({4, 3}), true);
}

}  // namespace
