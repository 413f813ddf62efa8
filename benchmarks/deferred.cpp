#include <fastweights/memories/adaptors/deferred.hpp>

#include "heads_of.hpp"
#include "operations.hpp"
#include "suite.hpp"

// Memories that write W once in eight tokens, stored in the rule's scalar or in 16 bits.
namespace {

using measure::Index;

template <class Rule, class M> measure::HeadsPointer make(Index d, Index steps, Index count) {
  return std::make_unique<measure::ForwardHeads<M>>(M(Rule({.key_size = d})), steps, count);
}

/// Steps only, because a deferred memory has the scan of its rule.
template <class Rule, class Stored> void add_steps(const char* name) {
  using M = fw::Deferred<Rule, 8, Stored>;
  for (const Index d : {64, 128, 256}) {
    measure::Subject s;
    s.memory = name;
    s.d = d;
    s.flops = 6 * static_cast<double>(d * d);
    s.passes = 1.125;  // every step reads W, and one of 8 writes it
    s.make = make<Rule, M>;
    measure::add_step(s, {.steps = 1});
  }
}

}  // namespace

void add_deferred() {
  using Delta = fw::DeltaRule<float>;
  using Kimi = fw::GatedDeltaRule<float, fw::Dynamic, fw::Dynamic, fw::KeyValueBetaVectorDecay>;
  add_steps<Delta, float>("deferred_delta_rule");
  add_steps<Delta, Eigen::bfloat16>("deferred_delta_rule_bfloat16");
  add_steps<Delta, Eigen::half>("deferred_delta_rule_half");
  add_steps<Kimi, float>("deferred_kimi_delta");
}
