#include <fastweights/any_memory/any_memory.hpp>
#include <fastweights/memories/adaptors/deferred.hpp>
#include <fastweights/memories/attention/key_value_cache.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>

#include "support/catch.hpp"
#include "support/laws.hpp"

/// \file
/// Memories whose sizes are fixed at compile time obey the laws, and give the numbers of the same
/// memories with sizes at run time.

namespace {

using fw::AnyMemory;
using fw::Dynamic;
using fw::Index;
using fw::make_memory;
using laws::difference;
using Run = laws::Run<double>;
using Record = fw::testing::AnyRecord<double>;

struct Gradients {
  Record inputs, queries;
  fw::AnyState<double> state;
};

// The gradients of a random sequence's inputs, queries and initial state.
Gradients random_gradients(const AnyMemory<double>& m, Index steps, bool positive) {
  fw::Random random(12);
  auto all = fw::testing::random_sequences(m, steps, random, positive), d = all;
  for (auto* record : {&d.inputs, &d.queries})
    for (auto& matrix : record->matrices) matrix.setZero();
  for (auto& matrix : d.outputs.matrices) random.fill(matrix, 1.0);
  auto state = m.initial_state(), ds = Run(m, state, positive, 0, 5, 4).state;
  fw::AnyCheckpoints<double> checkpoints;
  m.scan(state, all.inputs.views(), all.queries.views(), all.outputs.views<double>(), checkpoints);
  m.backward(checkpoints, all.inputs.views(), all.queries.views(), d.outputs.views(), ds,
             d.inputs.views<double>(), d.queries.views<double>());
  return {d.inputs, d.queries, ds};
}

void fixed_is_dynamic(const AnyMemory<double>& fixed, const AnyMemory<double>& dynamic,
                      bool positive = false) {
  INFO(fixed.name());
  laws::all(fixed, positive);
  Run a(fixed, fixed.initial_state(), positive, 20, 0, 12), stepped = a;
  Run b(dynamic, dynamic.initial_state(), positive, 20, 0, 12);
  a.scan();
  b.scan();
  CHECK(difference(a.all.outputs, b.all.outputs) <= 1e-13);
  CHECK(difference(a.state, b.state) <= 1e-13);
  for (Index t = 0; t < 20; ++t) stepped.step(t);
  CHECK(difference(stepped.all.outputs, b.all.outputs) <= 1e-13);
  CHECK(difference(stepped.state, b.state) <= 1e-13);
  CHECK(fixed.can().differentiable == dynamic.can().differentiable);
  if (!fixed.can().differentiable) return;
  const Gradients of_fixed = random_gradients(fixed, 20, positive),
                  of_dynamic = random_gradients(dynamic, 20, positive);
  CHECK(difference(of_fixed.inputs, of_dynamic.inputs) <= 1e-12);
  CHECK(difference(of_fixed.queries, of_dynamic.queries) <= 1e-12);
  CHECK(difference(of_fixed.state, of_dynamic.state) <= 1e-12);
}

TEST_CASE("fixed sizes: the delta rule", "[laws][fixed_sizes]") {
  fixed_is_dynamic(fw::DeltaRule<double, 3, 17>(), make_memory<double>("DeltaRule", {3, 17}));
}
TEST_CASE("fixed sizes: the gated delta rule with one decay per key row", "[laws][fixed_sizes]") {
  fixed_is_dynamic(fw::GatedDeltaRule<double, 17, 3, fw::KeyValueBetaVectorDecay>(),
                   make_memory<double>("KimiDeltaAttention", {17, 3}));
}
TEST_CASE("fixed sizes: normalised linear attention", "[laws][fixed_sizes]") {
  fixed_is_dynamic(fw::LinearAttention<double, 17, 3, fw::AttentionNormaliser<double>>(),
                   make_memory<double>("NormalisedLinearAttention", {17, 3}), true);
}
TEST_CASE("fixed sizes: a cache of tokens", "[laws][fixed_sizes]") {
  fixed_is_dynamic(fw::KeyValueCache<double, 5, 3>({}, {.capacity = 7}),
                   make_memory<double>("KeyValueCache", {5, 3, {{"capacity", 7}}}));
}
TEST_CASE("fixed sizes: a deferred memory", "[laws][fixed_sizes]") {
  using fw::Deferred;
  using Kimi = fw::GatedDeltaRule<double, 1, 65, fw::KeyValueBetaVectorDecay>;
  fixed_is_dynamic(Deferred(fw::DeltaRule<double, 7, 1>()),
                   make_memory<double>("DeferredDeltaRule", {7, 1}));
  // Its last tokens can be taken back.
  fixed_is_dynamic(Deferred<Kimi, 8, double, 4>(Kimi()),
                   make_memory<double>("DeferredKimiDeltaAttention", {1, 65}));
}

}  // namespace
