#include <fastweights/memories/attention/delta_former.hpp>
#include <fastweights/memories/attention/forgetting_attention.hpp>
#include <fastweights/memories/attention/parallax.hpp>
#include <fastweights/memories/attention/path_attention.hpp>
#include <fastweights/memories/rules/comba.hpp>
#include <fastweights/memories/rules/gated_delta_product.hpp>
#include <fastweights/memories/rules/gated_delta_rule_2.hpp>
#include <fastweights/memories/rules/gated_oja_rule.hpp>
#include <fastweights/memories/rules/gated_slot_attention.hpp>
#include <fastweights/memories/rules/hgrn.hpp>
#include <fastweights/memories/rules/log_linear_attention.hpp>
#include <fastweights/memories/rules/longhorn.hpp>
#include <fastweights/memories/rules/low_rank_rule.hpp>
#include <fastweights/memories/rules/mamba3.hpp>
#include <fastweights/memories/rules/mlstm.hpp>
#include <fastweights/memories/rules/normalised_gated_attention.hpp>
#include <fastweights/memories/rules/preconditioned_delta_rule.hpp>
#include <fastweights/memories/rules/rwkv6.hpp>
#include <fastweights/memories/rules/selective_scan.hpp>

#include "support/saves_its_state.hpp"

namespace {

TEST_CASE("save then load is the identity for states of the delta family", "[weights]") {
  saves_its_state(fw::Comba<float>({5, 3}));
  saves_its_state(fw::GatedDeltaProduct<float>({5, 3}));
  saves_its_state(fw::GatedDeltaRule2<double, 5, 3>());
  saves_its_state(fw::GatedOjaRule<double>({5, 3}));
  saves_its_state(fw::Longhorn<float>({5, 3}));
  saves_its_state(fw::LowRankRule<double>({5, 3}));
  saves_its_state(fw::PreconditionedDeltaRule<double>({5, 3}));
  saves_its_state(fw::Rwkv6<float, 5, 3>());
}

TEST_CASE("save then load is the identity for states of state space models", "[weights]") {
  saves_its_state(fw::GatedSlotAttention<float>({5, 3}, 4));
  saves_its_state(fw::Hgrn<float>(5));
  saves_its_state(fw::LogLinearAttention<float>({5, 3}, 4));
  saves_its_state(fw::Mamba3<double>({5, 3}));
  saves_its_state(fw::Mlstm<float, 5, 3>());
  saves_its_state(fw::NormalisedGatedAttention<double>({5, 3}));
  saves_its_state(fw::SelectiveScan<double, 5, 3>());
}

TEST_CASE("save then load is the identity for attention to the last tokens", "[weights]") {
  saves_its_state(fw::DeltaFormer<float>({5, 3}, {4}));
  saves_its_state(fw::ForgettingAttention<double>({5, 3}, {4}));
  saves_its_state(fw::Parallax<float, 5, 3>({}, {4}));
  saves_its_state(fw::PathAttention<double>({5, 3}, {9}));
}

}  // namespace
