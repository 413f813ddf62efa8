#include <fastweights/memories/attention/delta_former.hpp>
#include <fastweights/memories/attention/forgetting_attention.hpp>
#include <fastweights/memories/attention/key_value_cache.hpp>
#include <fastweights/memories/attention/parallax.hpp>
#include <fastweights/memories/attention/path_attention.hpp>

#include "support/laws.hpp"

namespace {

using Eigen::MatrixXd;
using fw::Index;
using Cache = fw::KeyValueCache<double>;
using Forgetting = fw::ForgettingAttention<double>;
using Path = fw::PathAttention<double>;
using Former = fw::DeltaFormer<double>;
using Parallax = fw::Parallax<double>;

template <template <class, int, int> class Rule> void obeys() {
  using M = Rule<double, -1, -1>;
  for (const auto& [dk, dv] : {std::pair<Index, Index>{1, 1}, {3, 17}, {65, 4}, {64, 64}}) {
    INFO("d_v = " << dv << ", d_k = " << dk);
    laws::every_memory(M({dk, dv}, {9}));
  }
  // More tokens than the capacity, fewer, and one.
  for (const Index capacity : {1, 4, 30})
    laws::gradients_are_exact(M({5, 4}, {capacity}), 9, false);
  laws::gradients_are_exact(M({1, 3}, {3, 2.0}), 6, false);
  laws::float_follows_double(M({17, 3}, {9}), false);
  laws::takes_autodiff(M({4, 3}, {9}), false);
  laws::fixed_is_dynamic(Rule<double, 4, 3>({}, {9}), M({4, 3}, {9}), false);
}

TEST_CASE("forgetting attention obeys the laws", "[laws][forgetting_attention]") {
  obeys<fw::ForgettingAttention>();
}
TEST_CASE("PaTH attention obeys the laws", "[laws][path_attention]") { obeys<fw::PathAttention>(); }
TEST_CASE("DeltaFormer obeys the laws", "[laws][delta_former]") { obeys<fw::DeltaFormer>(); }
TEST_CASE("Parallax obeys the laws", "[laws][parallax]") { obeys<fw::Parallax>(); }

// Outputs of 20 tokens with 7 in the memory.
template <class M> fw::testing::Sequences<M> outputs_of(const M& m) {
  fw::Random random(3);
  auto all = fw::testing::random_sequences(m, 20, random);
  auto state = fw::initial_state(m);
  laws::scan(m, state, all);
  return all;
}
const Eigen::RowVectorXd zeros = Eigen::RowVectorXd::Zero(20), ones = Eigen::RowVectorXd::Ones(20);

TEST_CASE("without its gates, every attention is softmax attention", "[token_attention]") {
  const auto cache = outputs_of(Cache({4, 5}, {7}));
  const auto& [inputs, queries, outputs] = cache;
  const auto& [key, value] = inputs;
  CHECK(laws::output_difference(cache, Forgetting({4, 5}, {7}), {key, value, ones}) <= 1e-14);
  CHECK(laws::output_difference(cache, Former({4, 5}, {7}), {key, value, zeros, key}) <= 1e-14);
  CHECK(laws::output_difference(cache, Path({4, 5}, {7}), {key, value, key, zeros, ones}) <= 1e-14);
}

TEST_CASE("Parallax without a second query is softmax attention", "[parallax]") {
  auto all = outputs_of(Parallax({4, 5}, {7}));
  const Cache cache({4, 5}, {7});
  auto state = fw::initial_state(cache);
  MatrixXd expected(5, 20);
  fw::scan(cache, state, {all.inputs.key, all.inputs.value}, {all.queries.query}, {expected});
  all.queries.correction.setZero();
  const Parallax parallax({4, 5}, {7});
  auto own = fw::initial_state(parallax);
  laws::scan(parallax, own, all);
  CHECK(largest_entry(all.outputs.output - expected) <= 1e-14);
}

TEST_CASE("PaTH attention that reflects nothing is forgetting attention", "[path_attention]") {
  const auto all = outputs_of(Forgetting({4, 5}, {7, 1.0}));
  const auto& in = all.inputs;
  CHECK(laws::output_difference(all, Path({4, 5}, {7, 1.0}),
                                {in.key, in.value, in.key, zeros, in.decay}) <= 1e-14);
}

TEST_CASE("an attention memory of no tokens answers 0", "[token_attention]") {
  const Forgetting m({4, 5}, {7});
  const auto state = fw::initial_state(m);
  const Eigen::VectorXd query = Eigen::VectorXd::Ones(4);
  Eigen::VectorXd output = Eigen::VectorXd::Ones(5);
  fw::read(m, state, {query}, {output});
  CHECK(output.isZero(0));
}

TEST_CASE("an attention memory refuses a capacity of 0", "[token_attention]") {
  CHECK_THROWS_AS(Forgetting({4, 5}, {0}), std::invalid_argument);
  CHECK_THROWS_AS(Path({4, 5}, {-1}), std::invalid_argument);
}

}  // namespace
