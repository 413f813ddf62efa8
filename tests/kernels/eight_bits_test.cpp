// W in 8 bits with 4 bits below them: see kernels/decode/eight_bits.hpp.

#include <fastweights/memories/adaptors/deferred.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_product.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/gated_linear_attention.hpp>
#include <fastweights/memories/rules/hebbian.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>
#include <fastweights/memories/rules/normalised_gated_attention.hpp>
#include <limits>

#include "support/catch.hpp"
#include "support/largest_entry.hpp"
#include "support/sizes.hpp"
#include "support/typed_sequences.hpp"

namespace {

using Eigen::MatrixXd;
using fw::Deferred;
using fw::Dynamic;
using fw::Index;

// W in `bits` of its 12 bits.
template <class State> MatrixXd decoded(const State& s, int bits) {
  MatrixXd W(s.W.rows(), s.W.cols());
  for (Index j = 0; j < W.cols(); ++j)
    for (Index i = 0; i < W.rows(); ++i) {
      const int both = s.parts.remainders(i, j / 2) + 128, low = both % 16, high = both / 16 - 8;
      const int rest = j % 2 == 1 ? high : low < 8 ? low : low - 16;
      W(i, j) = double(s.parts.scales[i]) * (s.W(i, j) + (bits == 12 ? rest / 16.0 : 0));
    }
  return W;
}

// The same state with W in another type.
template <class To, class State> To with_matrix(const State& s, const MatrixXd& W) {
  To other;
  other.W = W.cast<typename decltype(To::W)::Scalar>();
  other.keys = s.keys;
  other.updates = s.updates;
  other.decays = s.decays;
  other.sum = s.sum;
  other.normaliser = s.normaliser;
  other.past = s.past;
  other.pending = s.pending;
  return other;
}

// After every token: a read takes 8 bits, and a flush rounds to 12 bits what a flush of the 12 bits
// in M's Scalar gives.
template <int N, int R = 0, class M> void rounds_to_12_bits(const M& plain, bool positive = false) {
  using S = typename M::Scalar;
  using Wide = Deferred<M, N, S, R>;
  const Deferred<M, N, std::int8_t, R> m(plain);
  const Wide wide(plain);
  fw::Random random(3), same_random(3);
  const Index steps = 2 * N + R + 3;
  auto all = fw::testing::random_sequences(m, steps, random, positive);
  auto again = fw::testing::random_sequences(wide, steps, same_random, positive);
  auto state = fw::initial_state(m);
  const double accuracy = 64 * double(std::numeric_limits<S>::epsilon());
  double flushes = 0, scales = 0;
  for (Index t = 0; t < steps; ++t) {
    const auto [input, query, output] = laws::tokens(m, all, t);
    fw::step(m, state, input, query, output);
    fw::read(m, state, query, output);
    const auto same = laws::tokens(wide, again, t);
    const auto read = with_matrix<fw::StateOf<Wide>>(state, decoded(state, 8));
    fw::read(wide, read, std::get<1>(same), std::get<2>(same));
    if (state.pending == 0) continue;

    auto flushed = state;
    auto exact = with_matrix<fw::StateOf<Wide>>(state, decoded(state, 12));
    m.flush(flushed);
    wide.flush(exact);
    const MatrixXd W = decoded(flushed, 12);
    const MatrixXd wanted = exact.W.template cast<double>();
    for (Index i = 0; i < W.rows(); ++i) {
      const double largest = exact.W.row(i).template cast<double>().cwiseAbs().maxCoeff();
      const double scale = double(flushed.parts.scales[i]);
      if (largest > 0)
        keep_worst(flushes, (largest_entry(W.row(i) - wanted.row(i)) - scale / 32) / largest);
      keep_worst(scales, std::abs(scale * 2039 / 16 - largest) / std::max(largest, 1e-30));
    }
  }
  INFO(m.name << " N " << N << " R " << R << " d_v " << state.W.rows() << " d_k "
              << state.W.cols());
  CHECK(laws::difference(all.outputs, again.outputs) <= accuracy);
  CHECK(flushes <= accuracy);
  CHECK(scales <= accuracy);
}

template <class S> void rules_round(Index dk, Index dv) {
  const fw::Sizes<Dynamic, Dynamic> sizes{dk, dv};
  rounds_to_12_bits<4>(
      fw::LinearAttention<S, Dynamic, Dynamic, fw::NoNormaliser, fw::PlainSum>(sizes));
  rounds_to_12_bits<3>(fw::NormalisedGatedAttention<S>(sizes), true);
  rounds_to_12_bits<1>(fw::DeltaRule<S>(sizes));
  rounds_to_12_bits<5>(fw::GatedDeltaRule<S>(sizes));
  rounds_to_12_bits<4>(fw::GatedDeltaRule<S, Dynamic, Dynamic, fw::KeyValueBetaVectorDecay>(sizes));
  rounds_to_12_bits<4, 3>(fw::GatedLinearAttention<S, Dynamic, Dynamic, fw::KeyValueDecay>(sizes));
  rounds_to_12_bits<3, 2>(fw::GatedDeltaProduct<S, 2>(sizes));
  rounds_to_12_bits<2, 5>(fw::HebbianMemory<S>(sizes, {S(0.9), S(0.7)}));
}

TEST_CASE("8 bits: products take 8 bits, a flush rounds to 12", "[deferred]") {
  for (const Index d : ::sizes({1, 3, 17, 63, 64, 65, 100}, {1, 3, 17, 65})) {
    rules_round<float>(d, d);
    rules_round<double>(d, d);
  }
  for (const auto& [dk, dv] : {std::pair<Index, Index>{1, 5}, {5, 1}, {3, 17}, {65, 4}, {40, 129}})
    rules_round<float>(dk, dv);
}

TEST_CASE("8 bits: the error of an answer after many tokens", "[deferred]") {
  using M = fw::GatedDeltaRule<float>;
  const M plain({.key_size = 64});
  const Deferred<M, 8, std::int8_t> m(plain);
  auto state = fw::initial_state(m);
  auto exact = fw::initial_state(plain);
  fw::Random random(1);
  Eigen::VectorXf key(64), value(64), query(64), y(64), wanted(64);
  double squares = 0, all = 0;
  for (int t = 0; t < 5000; ++t) {
    for (auto* x : {&key, &value, &query})
      for (float& entry : *x) entry = float(random.normal());
    key.normalize();
    float beta = float(random.uniform()), decay = 0.99f;
    fw::step(m, state, {key, value, beta, decay}, {query}, {y});
    fw::step(plain, exact, {key, value, beta, decay}, {query}, {wanted});
    squares += double((y - wanted).squaredNorm());
    all += double(wanted.squaredNorm());
  }
  CHECK(std::sqrt(squares / all) < 0.0066);
  CHECK(std::sqrt(squares / all) > 0.004);  // 8 bits have no less
}

TEST_CASE("8 bits: numbers of any size, and rows that are not finite", "[deferred]") {
  using M = fw::HebbianMemory<float>;
  const Deferred<M, 2, std::int8_t> m(M({.key_size = 3, .value_size = 5}, {0.25f, 1}));
  auto state = fw::initial_state(m);
  const float infinity = std::numeric_limits<float>::infinity();
  Eigen::VectorXf value(5);
  value << 1e-35f, 2e38f, 0, infinity, std::numeric_limits<float>::quiet_NaN();
  const Eigen::Vector3f key(1, 0.5f, -0.25f);
  for (int t = 0; t < 2; ++t) fw::write(m, state, {key, value});
  const MatrixXd W = decoded(state, 8);
  const Eigen::RowVector3d each = 1.25 * key.cast<double>();
  CHECK(largest_entry(W.row(0) - 1e-35 * each) <= 1e-37);
  CHECK(largest_entry(W.row(1) - 2e38 * each) <= 2e36);
  CHECK(W.row(2).isZero(0));
  CHECK(std::isnan(W(3, 0)));
  CHECK(std::isnan(W(4, 2)));
  CHECK_FALSE(fw::all_finite(state));
}

}  // namespace
