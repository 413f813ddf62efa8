#include <fastweights/memories/adaptors/deferred.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/gated_linear_attention.hpp>
#include <fastweights/memories/rules/hebbian.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>

#include "support/catch.hpp"
#include "support/largest_entry.hpp"
#include "support/sizes.hpp"
#include "support/typed_sequences.hpp"

namespace {

using Eigen::bfloat16;
using Eigen::half;
using fw::Deferred;
using fw::Dynamic;
using fw::Index;

// Compares outputs and the flushed W of the deferred memory with the plain memory, at every token.
template <int N, class Stored, class M>
void agrees(const M& plain, Index steps, double limit, bool positive = false) {
  using D = Deferred<M, N, Stored>;
  const D deferred(plain);
  fw::Random random(3), again(3);
  auto all = fw::testing::random_sequences(plain, steps, random, positive);
  auto same = fw::testing::random_sequences(deferred, steps, again, positive);
  auto expected = fw::initial_state(plain);
  auto state = fw::initial_state(deferred);
  double worst = 0;
  for (Index t = 0; t < steps; ++t) {
    const auto a = laws::tokens(plain, all, t);
    const auto b = laws::tokens(deferred, same, t);
    fw::step(plain, expected, std::get<0>(a), std::get<1>(a), std::get<2>(a));
    fw::step(deferred, state, std::get<0>(b), std::get<1>(b), std::get<2>(b));
    auto flushed = state;
    deferred.flush(flushed);
    CHECK(flushed.pending == 0);
    CHECK(state.pending == (t + 1) % N);
    const Eigen::MatrixXd W = flushed.W.template cast<double>();
    const Eigen::MatrixXd wanted = expected.W.template cast<double>();
    keep_worst(worst, largest_entry(W - wanted) / wanted.cwiseAbs().maxCoeff());
  }
  INFO(D::name << " N " << N << " d_v " << expected.W.rows() << " d_k " << expected.W.cols());
  CHECK(worst <= limit);
  CHECK(laws::difference(same.outputs, all.outputs) <= limit);
}

template <int N, class S> void some_agree(Index dk, Index dv, double limit) {
  agrees<N, S>(fw::DeltaRule<S>({dk, dv}), 2 * N + 3, limit);
  agrees<N, S>(fw::GatedDeltaRule<S>({dk, dv}), 2 * N + 3, limit);
}

template <int N, class S> void rules_agree(Index dk, Index dv, double limit) {
  using Normaliser = fw::AttentionNormaliser<S>;
  const Index steps = 2 * N + 3;
  agrees<N, S>(fw::LinearAttention<S>({dk, dv}), steps, limit);
  agrees<N, S>(fw::LinearAttention<S, Dynamic, Dynamic, Normaliser>({dk, dv}), steps, limit, true);
  agrees<N, S>(fw::DeltaRule<S>({dk, dv}), steps, limit);
  agrees<N, S>(fw::DeltaRule<S, Dynamic, Dynamic, Normaliser>({dk, dv}), steps, limit, true);
  agrees<N, S>(
      fw::DeltaRule<S, Dynamic, Dynamic, fw::NoNormaliser, fw::KeyValueVectorBeta>({dk, dv}), steps,
      limit);
  agrees<N, S>(fw::GatedLinearAttention<S>({dk, dv}), steps, limit);
  agrees<N, S>(fw::GatedLinearAttention<S, Dynamic, Dynamic, fw::KeyValueDecay>({dk, dv}), steps,
               limit);
  agrees<N, S>(fw::GatedDeltaRule<S>({dk, dv}), steps, limit);
  agrees<N, S>(fw::GatedDeltaRule<S, Dynamic, Dynamic, fw::KeyValueBetaVectorDecay>({dk, dv}),
               steps, limit);
  for (const S decay : {S(0.97), S(0), S(-0.3)})
    agrees<N, S>(fw::HebbianMemory<S>({dk, dv}, {decay, S(0.7)}), steps, limit);
}

template <class S> void all_agree(double limit) {
  for (const Index d : ::sizes({1, 3, 17, 63, 64, 65, 100}, {1, 3, 17, 65}))
    rules_agree<8, S>(d, d, limit);
  for (const auto& [dk, dv] :
       {std::pair<Index, Index>{1, 5}, {5, 1}, {3, 17}, {65, 4}, {40, 129}}) {
    rules_agree<8, S>(dk, dv, limit);
    some_agree<1, S>(dk, dv, limit);
    some_agree<3, S>(dk, dv, limit);
  }
}

TEST_CASE("deferred: agrees with the plain memory in double", "[deferred]") {
  all_agree<double>(1e-13);
}
TEST_CASE("deferred: agrees with the plain memory in float", "[deferred]") {
  all_agree<float>(3e-5);
}

TEST_CASE("deferred: 16-bit storage agrees up to its rounding", "[deferred]") {
  for (const Index d : {1, 3, 17, 64, 65, 100}) {
    agrees<8, bfloat16>(fw::DeltaRule<float>({.key_size = d}), 20, 5e-2);
    agrees<8, half>(fw::DeltaRule<float>({.key_size = d}), 20, 5e-3);
    agrees<1, bfloat16>(fw::GatedDeltaRule<float>({.key_size = d}), 20, 5e-2);
    agrees<8, half>(fw::GatedLinearAttention<float>({.key_size = d}), 20, 5e-3);
    agrees<8, float>(fw::DeltaRule<double>({.key_size = d}), 20, 1e-6);
  }
}

}  // namespace
