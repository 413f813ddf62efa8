#include <fastweights/memories/rules/fast_weight_memory.hpp>
#include <fastweights/memories/rules/gated_slot_attention.hpp>
#include <fastweights/memories/rules/hgrn.hpp>
#include <fastweights/memories/rules/log_linear_attention.hpp>
#include <fastweights/memories/rules/mamba3.hpp>
#include <fastweights/memories/rules/mlstm.hpp>
#include <fastweights/memories/rules/normalised_gated_attention.hpp>
#include <fastweights/memories/rules/selective_scan.hpp>

#include "every_rule/rule.hpp"

namespace every_rule {

void add_state_spaces(Index d, Rules& rules) {
  using RowDecays = fw::NormalisedGatedAttention<float, -1, -1, fw::KeyValueVectorDecay>;
  constexpr Index levels = 13, slots = 64;  // levels for 4096 tokens
  rules.push_back(rule("LogLinearAttention, L = 13", fw::LogLinearAttention<float>({d}, levels),
                       {.squares = 5 * levels}));
  rules.push_back(
      rule("NormalisedGatedAttention", fw::NormalisedGatedAttention<float>({d}), {.squares = 5}));
  rules.push_back(rule("… with KeyValueVectorDecay", RowDecays({d}), {.squares = 5}));
  rules.push_back(rule("Mlstm", fw::Mlstm<float>({d}), {.squares = 5}));
  rules.push_back(rule("GatedSlotAttention, M = 64", fw::GatedSlotAttention<float>({d}, slots),
                       {.lines = 5 * slots * 2}));
  // 16 keys, as published: with A_ij = −j for j = 1 … d most decays would be subnormal numbers.
  rules.push_back(rule("SelectiveScan (Mamba), d_k = 16", fw::SelectiveScan<float>({16, d}),
                       {.lines = 6 * 16, .also = "16 d exp"}));
  rules.push_back(rule("Mamba3", fw::Mamba3<float>({d}), {.squares = 7}));
  rules.push_back(rule("Hgrn", fw::Hgrn<float>(d), {.lines = 2}));
  rules.push_back(rule("FastWeightMemory", fw::FastWeightMemory<float>({d}), {.squares = 9}));
}

}  // namespace every_rule
