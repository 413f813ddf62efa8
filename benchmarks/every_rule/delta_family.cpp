#include <fastweights/memories/rules/comba.hpp>
#include <fastweights/memories/rules/gated_delta_product.hpp>
#include <fastweights/memories/rules/gated_delta_rule_2.hpp>
#include <fastweights/memories/rules/gated_oja_rule.hpp>
#include <fastweights/memories/rules/longhorn.hpp>
#include <fastweights/memories/rules/low_rank_rule.hpp>
#include <fastweights/memories/rules/preconditioned_delta_rule.hpp>
#include <fastweights/memories/rules/rwkv6.hpp>

#include "every_rule/rule.hpp"

namespace every_rule {

void add_delta_family(Index d, Rules& rules) {
  using Identity = fw::LowRankRule<float, -1, -1, fw::KeyValueRemoval>;
  using Exact = fw::Longhorn<float, -1, -1, fw::LonghornForm::exact>;
  using RowDecays = fw::PreconditionedDeltaRule<float, -1, -1, -1>;
  const auto of_the_key = [](auto& inputs, auto&) { inputs.lookup = 0.9f * inputs.key; };
  const auto moves_the_key = [](auto& inputs, auto&) {
    inputs.removal = -inputs.key;
    inputs.replacement = 0.5f * inputs.key;
  };
  const auto short_values = [](auto& inputs, auto&) { inputs.value.colwise().normalize(); };
  rules.push_back(rule("Comba", fw::Comba<float>({d}), {.squares = 7}, of_the_key));
  rules.push_back(rule("GatedDeltaRule2", fw::GatedDeltaRule2<float>({d}), {.squares = 7}));
  rules.push_back(
      rule("GatedDeltaProduct, N = 2", fw::GatedDeltaProduct<float, 2>({d}), {.squares = 11}));
  rules.push_back(
      rule("LowRankRule (RWKV-7)", fw::LowRankRule<float>({d}), {.squares = 9}, moves_the_key));
  rules.push_back(
      rule("… with KeyValueRemoval (IPLR)", Identity({d}), {.squares = 9}, moves_the_key));
  rules.push_back(
      rule("PreconditionedDeltaRule", fw::PreconditionedDeltaRule<float>({d}), {.squares = 7}));
  rules.push_back(rule("… with one decay per key row", RowDecays({d}), {.squares = 7}));
  rules.push_back(rule("GatedOjaRule", fw::GatedOjaRule<float>({d}), {.squares = 7}, short_values));
  rules.push_back(rule("Longhorn", fw::Longhorn<float>({d}), {.squares = 7}));
  rules.push_back(rule("… exact", Exact({d}), {.squares = 6}));
  rules.push_back(rule("Rwkv6", fw::Rwkv6<float>({d}), {.squares = 5}));
}

}  // namespace every_rule
