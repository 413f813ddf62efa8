#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>

#include "every_rule/rule.hpp"

namespace every_rule {

using Normaliser = fw::AttentionNormaliser<float>;
template <class Normalised>
using RowDelta = fw::DeltaRule<float, -1, -1, Normalised, fw::KeyValueVectorBeta>;

void add_sums_and_deltas(Index d, Rules& rules) {
  rules.push_back(rule("LinearAttention", fw::LinearAttention<float>({d}), {.squares = 4}));
  rules.push_back(rule("… with AttentionNormaliser",
                       fw::LinearAttention<float, -1, -1, Normaliser>({d}), {.squares = 7}));
  rules.push_back(rule("DeltaRule", fw::DeltaRule<float>({d}), {.squares = 6}));
  rules.push_back(
      rule("… with KeyValueVectorBeta", RowDelta<fw::NoNormaliser>({d}), {.squares = 6}));
  rules.push_back(rule("… with AttentionNormaliser", fw::DeltaRule<float, -1, -1, Normaliser>({d}),
                       {.squares = 9}));
}

}  // namespace every_rule
