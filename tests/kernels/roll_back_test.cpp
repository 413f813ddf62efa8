#include "kernels/roll_back.hpp"

#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_product.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/gated_linear_attention.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>

namespace {

TEST_CASE("roll back: drafts leave no trace in rules of every kind", "[deferred]") {
  using Normaliser = fw::AttentionNormaliser<double>;
  for (const auto& [dk, dv] : {std::pair<Index, Index>{1, 1}, {3, 17}, {17, 3}, {65, 63}}) {
    const fw::Sizes<Dynamic, Dynamic> sizes{dk, dv};
    all_rings(fw::LinearAttention<double, Dynamic, Dynamic, Normaliser>(sizes), true);
    all_rings(fw::DeltaRule<double>(sizes));
    all_rings(fw::DeltaRule<double, Dynamic, Dynamic, Normaliser>(sizes), true);
    all_rings(fw::GatedDeltaRule<double>(sizes));
    all_rings(fw::GatedDeltaRule<double, Dynamic, Dynamic, fw::KeyValueBetaVectorDecay>(sizes));
    all_rings(fw::GatedLinearAttention<double>(sizes));
    all_rings(fw::GatedLinearAttention<double, Dynamic, Dynamic, fw::KeyValueDecay>(sizes));
  }
}

TEST_CASE("roll back: drafts leave no trace in 16 bits, before W is written", "[deferred]") {
  using M = fw::GatedDeltaRule<float>;
  using D = Deferred<M, 4, Eigen::bfloat16, 3>;
  const D m(M({.key_size = 17}));
  fw::Random random(1);
  auto all = fw::testing::random_sequences(m, 12, random);
  auto state = fw::initial_state(m);
  run_steps(m, state, all, 0, 8);  // W has 4 of these, 4 are pending
  const auto before = bytes_of<D>(state);
  run_steps(m, state, all, 8, 11);
  CHECK(bytes_of<D>(state) != before);
  fw::roll_back(state, 3);
  CHECK(bytes_of<D>(state) == before);
}

TEST_CASE("roll back: the last tokens of a scan can be taken back", "[deferred]") {
  using M = fw::GatedDeltaRule<double, Dynamic, Dynamic, fw::KeyValueBetaVectorDecay>;
  const Deferred<M, 4, double, 5> m(M({9, 8}));
  fw::Random random(1);
  auto all = fw::testing::random_sequences(m, 40, random);
  auto rest = fw::testing::random_sequences(m, 32, random);
  auto steps = fw::initial_state(m), scanned = steps;
  run_steps(m, steps, all, 0, 40);
  scanned = steps;
  run_steps(m, steps, rest, 0, 27);
  fw::scan(m, scanned, fw::view<fw::WriteSequence<decltype(m)>>(rest.inputs),
           fw::view<fw::ReadSequence<decltype(m)>>(rest.queries),
           fw::view<fw::OutSequence<decltype(m)>>(rest.outputs));
  fw::roll_back(scanned, 5);
  m.flush(steps);
  m.flush(scanned);
  CHECK(largest_entry(steps.W - scanned.W) <= 1e-13);
}

TEST_CASE("roll back: refuses more tokens than it can take back", "[deferred]") {
  using M = fw::GatedDeltaProduct<float, 2>;
  const Deferred<M, 4, float, 3> m(M({.key_size = 5}));
  fw::Random random(1);
  auto all = fw::testing::random_sequences(m, 9, random);
  auto state = fw::initial_state(m);
  const auto refused = [&](Index tokens, const std::string& limit) {
    const auto before = bytes_of<Deferred<M, 4, float, 3>>(state);
    CHECK_THROWS_WITH(fw::roll_back(state, tokens),
                      "roll_back: " + std::to_string(tokens) + " tokens, expected 0 to " + limit);
    CHECK(bytes_of<Deferred<M, 4, float, 3>>(state) == before);
  };
  refused(1, "0");
  run_steps(m, state, all, 0, 2);
  refused(-1, "2");
  refused(3, "2");
  run_steps(m, state, all, 2, 9);
  refused(4, "3");
  fw::roll_back(state, 3);
  m.flush(state);
  refused(1, "0");
}

}  // namespace
