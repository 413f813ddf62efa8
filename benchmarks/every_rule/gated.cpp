#include <fastweights/memories/adaptors/deferred.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/gated_linear_attention.hpp>
#include <fastweights/memories/rules/hebbian.hpp>

#include "every_rule/rule.hpp"

namespace every_rule {

void add_gated(Index d, Rules& rules) {
  using Simple = fw::GatedLinearAttention<float, -1, -1, fw::KeyValueDecay>;
  using Kimi = fw::GatedDeltaRule<float, -1, -1, fw::KeyValueBetaVectorDecay>;
  using Delta = fw::GatedDeltaRule<float>;
  rules.push_back(
      rule("GatedLinearAttention", fw::GatedLinearAttention<float>({d}), {.squares = 5}));
  rules.push_back(rule("… with KeyValueDecay (Mamba-2)", Simple({d}), {.squares = 5}));
  rules.push_back(rule("GatedDeltaRule", Delta({d}), {.squares = 7}));
  rules.push_back(
      rule("… with KeyValueBetaVectorDecay (Kimi delta attention)", Kimi({d}), {.squares = 7}));
  rules.push_back(rule("HebbianMemory", fw::HebbianMemory<float>({d}), {.squares = 5}));
  rules.push_back(rule("Deferred GatedDeltaRule, 8 tokens", fw::Deferred<Delta, 8>(Delta({d})),
                       {.squares = 7, .lines = 32}));
}

}  // namespace every_rule
