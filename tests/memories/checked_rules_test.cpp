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

#include "memories/checked_cases.hpp"

/// \file
/// As checked_numbers_test.cpp, for the delta family and state space models. The gated Oja rule is
/// not here: it refuses the values of these cases, which are longer than 1.

using namespace checked_cases;

TEST_CASE("checked scan and step of the delta family: numbers that are not finite or too large",
          "[checked]") {
  refuses_numbers(Case(fw::Comba<float>({5, 3})));
  refuses_numbers(Case(fw::GatedDeltaProduct<float>({5, 3})));
  refuses_numbers(Case(fw::GatedDeltaRule2<float>({5, 3})));
  refuses_numbers(Case(fw::LowRankRule<float>({5, 3})));
  refuses_numbers(Case(fw::PreconditionedDeltaRule<double>({5, 3})));
  refuses_numbers(Case(fw::Longhorn<float>({5, 3})));
  refuses_numbers(Case(fw::Rwkv6<float>({5, 3})));
}

TEST_CASE("checked scan and step of state space models: numbers that are not finite or too large",
          "[checked]") {
  refuses_numbers(Case(fw::GatedSlotAttention<float>({5, 3}, 2)));
  refuses_numbers(Case(fw::Hgrn<float>(5)));
  refuses_numbers(Case(fw::LogLinearAttention<float>({5, 3}, 3)));
  refuses_numbers(Case(fw::Mamba3<float>({5, 3})));
  refuses_numbers(Case(fw::Mlstm<float>({5, 3})));
  refuses_numbers(Case(fw::NormalisedGatedAttention<float>({5, 3})));
  refuses_numbers(Case(fw::SelectiveScan<float>({5, 3})));
}
