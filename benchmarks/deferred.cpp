#include <fastweights/any_memory/table.hpp>
#include <fastweights/memories/adaptors/deferred.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>

#include "operations.hpp"
#include "suite.hpp"
#include "typed_heads.hpp"

// Memories that write W once in eight tokens, stored in the rule's scalar or in 16 bits.
namespace {

using measure::Index;
using measure::MakeHeads;

/// Steps only, because a deferred memory has the scan of its rule.
void add_steps(const char* name, const MakeHeads& make) {
  for (const Index d : {64, 128, 256}) {
    measure::Subject s;
    s.memory = name;
    s.d = d;
    s.flops = 6 * static_cast<double>(d * d);
    s.passes = 1.125;  // every step reads W, and one of 8 writes it
    s.make = make;
    measure::add_step(s, {.steps = 1});
  }
}

/// A deferred memory that is not in the table. `rule` is the name of Rule.
template <class Rule, class Stored> MakeHeads heads_of(const char* rule) {
  return [rule](Index d, Index steps, Index count) {
    using M = fw::Deferred<Rule, 8, Stored>;
    const auto same = fw::make_memory<float>(rule, {.key_size = d});
    return std::make_unique<measure::TypedHeads<M>>(M(Rule({.key_size = d})), same, steps, count);
  };
}

}  // namespace

void add_deferred() {
  using Delta = fw::DeltaRule<float>;
  using Kimi = fw::GatedDeltaRule<float, fw::Dynamic, fw::Dynamic, fw::KeyValueBetaVectorDecay>;
  add_steps("deferred_delta_rule", measure::dynamic_heads("DeferredDeltaRule"));
  add_steps("deferred_delta_rule_bfloat16", measure::dynamic_heads("Bfloat16DeltaRule"));
  add_steps("deferred_delta_rule_half", heads_of<Delta, Eigen::half>("DeltaRule"));
  add_steps("deferred_kimi_delta", heads_of<Kimi, float>("KimiDeltaAttention"));
}
