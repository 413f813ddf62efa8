// Draft tokens of a deferred memory are written and taken back.

#include <fastweights/io/weights.hpp>
#include <fastweights/memories/adaptors/deferred.hpp>
#include <fastweights/memories/rules/comba.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_product.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_rule_2.hpp>
#include <fastweights/memories/rules/gated_linear_attention.hpp>
#include <fastweights/memories/rules/hebbian.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>
#include <fastweights/memories/rules/low_rank_rule.hpp>

#include "support/laws.hpp"

namespace {

using fw::Deferred;
using fw::Dynamic;
using fw::Index;

template <class D> auto bytes_of(const fw::StateOf<D>& state) {
  fw::io::SafeTensorsWriter file;
  fw::io::add_state(file, state, "state");
  return file.bytes();
}

template <class D, class All>
void run_steps(const D& m, fw::StateOf<D>& s, All& all, Index first, Index end) {
  for (Index t = first; t < end; ++t) {
    const auto [input, query, output] = laws::tokens(m, all, t);
    fw::step(m, s, input, query, output);
  }
}

// A stream of tokens, each after 0 to R drafts that are taken back, against the plain rule.
template <int N, int R, class M> void drafts_leave_no_trace(const M& plain, bool positive = false) {
  using D = Deferred<M, N, typename M::Scalar, R>;
  const D m(plain);
  const Index steps = 3 * N + 2 * R + 3;
  fw::Random random(3), again(3), other(4);
  auto all = fw::testing::random_sequences(m, steps, random, positive);
  auto expected = fw::testing::random_sequences(plain, steps, again, positive);
  auto drafts = fw::testing::random_sequences(m, R, other, positive);
  auto state = fw::initial_state(m);
  auto truth = fw::initial_state(plain);
  bool same_bytes = true;
  for (Index t = 0; t < steps; ++t) {
    const auto before = bytes_of<D>(state);
    const Index written = state.pending, count = t % (R + 1);
    run_steps(m, state, drafts, 0, count);
    const bool flushed = state.pending < written + count * fw::StateOf<D>::writes_per_token;
    fw::roll_back(state, count);
    if (!flushed) same_bytes = same_bytes && bytes_of<D>(state) == before;
    run_steps(m, state, all, t, t + 1);
    run_steps(plain, truth, expected, t, t + 1);
  }
  INFO(D::name << " N " << N << " R " << R);
  CHECK(same_bytes);
  CHECK(laws::difference(all.outputs, expected.outputs) <= 1e-12);
  m.flush(state);
  CHECK(largest_entry(state.W - truth.W) <= 1e-12 * largest_entry(truth.W));
}

template <class M> void all_rings(const M& plain, bool positive = false) {
  drafts_leave_no_trace<1, 1>(plain, positive);
  drafts_leave_no_trace<4, 3>(plain, positive);
  drafts_leave_no_trace<3, 7>(plain, positive);
}

TEST_CASE("roll back: drafts leave no trace in rules of every kind", "[deferred]") {
  using Normaliser = fw::AttentionNormaliser<double>;
  for (const auto& [dk, dv] : {std::pair<Index, Index>{1, 1}, {3, 17}, {17, 3}, {65, 63}}) {
    const fw::Sizes<Dynamic, Dynamic> sizes{dk, dv};
    all_rings(fw::LinearAttention<double>(sizes));
    all_rings(fw::LinearAttention<double, Dynamic, Dynamic, Normaliser>(sizes), true);
    all_rings(fw::DeltaRule<double>(sizes));
    all_rings(fw::DeltaRule<double, Dynamic, Dynamic, Normaliser>(sizes), true);
    all_rings(fw::GatedDeltaRule<double>(sizes));
    all_rings(fw::GatedDeltaRule<double, Dynamic, Dynamic, fw::KeyValueBetaVectorDecay>(sizes));
    all_rings(fw::GatedLinearAttention<double>(sizes));
    all_rings(fw::GatedLinearAttention<double, Dynamic, Dynamic, fw::KeyValueDecay>(sizes));
    all_rings(fw::Comba<double>(sizes));
    all_rings(fw::GatedDeltaProduct<double, 3>(sizes));
    all_rings(fw::GatedDeltaRule2<double>(sizes));
    all_rings(fw::LowRankRule<double>(sizes));
    for (const double decay : {0.97, 0.0, -0.3})
      all_rings(fw::HebbianMemory<double>(sizes, {decay, 0.7}));
  }
}

template <int Dk, int Dv> void fixed_sizes() {
  using Normaliser = fw::AttentionNormaliser<double>;
  all_rings(fw::LinearAttention<double, Dk, Dv, Normaliser>(), true);
  all_rings(fw::DeltaRule<double, Dk, Dv>());
  all_rings(fw::GatedDeltaRule<double, Dk, Dv>());
  all_rings(fw::GatedDeltaRule<double, Dk, Dv, fw::KeyValueBetaVectorDecay>());
}

TEST_CASE("roll back: drafts leave no trace in fixed sizes", "[deferred]") {
  fixed_sizes<1, 1>();
  fixed_sizes<17, 3>();
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
