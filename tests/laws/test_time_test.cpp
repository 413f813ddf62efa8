#include <fastweights/memories/rules/comba.hpp>
#include <fastweights/memories/rules/miras_memory.hpp>

#include "support/laws.hpp"

namespace {

using Eigen::MatrixXd;
using fw::Index;

template <class M> void obeys(std::initializer_list<std::pair<Index, Index>> sizes) {
  for (const auto& [dk, dv] : sizes) {
    INFO("d_v = " << dv << ", d_k = " << dk);
    laws::all(M({dk, dv}));
  }
  laws::gradients_are_exact(M({5, 4}), 17, false);
  laws::gradients_are_exact(M({1, 3}), 6, false);
  laws::gradients_are_exact(M({1, 1}), 3, false);
}

TEST_CASE("Yaad obeys the laws", "[laws][miras]") {
  obeys<fw::Yaad<double>>({{1, 1}, {3, 17}, {65, 4}, {64, 64}});
}
// Without one entry: from A = 0, its first outputs may be large, and rounding errors with them.
TEST_CASE("Moneta obeys the laws", "[laws][miras]") {
  obeys<fw::Moneta<double>>({{3, 17}, {65, 4}, {64, 64}});
}
TEST_CASE("Memora obeys the laws", "[laws][miras]") {
  obeys<fw::Memora<double>>({{1, 1}, {3, 17}, {65, 4}, {64, 64}});
}
TEST_CASE("Miras memories take automatic differentiation and fixed sizes", "[laws][miras]") {
  laws::takes_autodiff(fw::Yaad<double>({4, 3}), false);
  laws::takes_autodiff(fw::Moneta<double>({4, 3}), false);
  laws::takes_autodiff(fw::Memora<double>({4, 3}), false);
  laws::fixed_is_dynamic(fw::Yaad<double, 4, 3>(), fw::Yaad<double>({4, 3}), false);
  laws::fixed_is_dynamic(fw::Moneta<double, 4, 3>(), fw::Moneta<double>({4, 3}), false);
  laws::fixed_is_dynamic(fw::Memora<double, 4, 3>(), fw::Memora<double>({4, 3}), false);
}

TEST_CASE("a Huber loss without outliers gives Comba that looks up the key", "[miras]") {
  const fw::MirasMemory<double> squared({4, 5});
  fw::Random random(3);
  auto all = fw::testing::random_sequences(squared, 20, random);
  auto state = fw::initial_state(squared);
  laws::scan(squared, state, all);
  const auto& in = all.inputs;
  CHECK(laws::output_difference(all, fw::Comba<double>({4, 5}),
                                {in.key, in.value, in.key, in.beta, in.decay}) <= 1e-14);
  const Eigen::RowVectorXd threshold = Eigen::RowVectorXd::Constant(20, 100);
  CHECK(laws::output_difference(all, fw::Yaad<double>({4, 5}),
                                {in.key, in.value, in.beta, in.decay, threshold}) <= 1e-14);
}

TEST_CASE("an outlier is written with the length of the threshold", "[miras]") {
  const fw::Yaad<double> yaad({1, 2});
  auto state = fw::initial_state(yaad);
  const Eigen::VectorXd key = Eigen::VectorXd::Ones(1), value = Eigen::Vector2d(300, 400);
  const double beta = 0.5, decay = 1, threshold = 2;
  fw::write(yaad, state, {key, value, beta, decay, threshold});
  CHECK(largest_entry(state.A - Eigen::Vector2d(0.6, 0.8)) <= 1e-15);
  const double none = 0;
  fw::write(yaad, state, {key, value, beta, decay, none});
  CHECK(largest_entry(state.A - Eigen::Vector2d(0.6, 0.8)) <= 1e-15);
}

// W, column by column.
template <class M> MatrixXd weights(const M& m, fw::StateOf<M>& state) {
  MatrixXd W(m.signature().dv, m.signature().dk);
  for (Index j = 0; j < W.cols(); ++j) {
    const Eigen::VectorXd unit = Eigen::VectorXd::Unit(W.cols(), j);
    fw::read(m, state, {unit}, {W.col(j)});
  }
  return W;
}

TEST_CASE("Memora is a softmax of decayed log-weights", "[miras]") {
  const fw::Memora<double> memora({4, 5});
  fw::Random random(4);
  const auto all = fw::testing::random_sequences(memora, 1, random);
  auto state = fw::testing::random_state(memora, 7, random);
  const MatrixXd before = weights(memora, state);
  const auto& in = all.inputs;
  MatrixXd expected = in.decay(0) * before.array().log().matrix() -
                      in.beta(0) * (before * in.key - in.value) * in.key.transpose();
  expected = expected.array().exp();
  const Eigen::VectorXd sums = expected.rowwise().sum();
  expected.array().colwise() /= sums.array();
  fw::write(memora, state, {in.key, in.value, in.beta(0), in.decay(0)});
  CHECK(largest_entry(weights(memora, state) - expected) <= 1e-15);
}

TEST_CASE("Moneta reads A divided by the square of its 4-norm", "[miras]") {
  const fw::Moneta<double> moneta({3, 2});
  auto state = fw::initial_state(moneta);
  CHECK(weights(moneta, state).isZero(0));
  for (const double size : {1e-150, 1.0, 1e150}) {
    state.A << 1, -2, 3, 4, 0, -1;
    const MatrixXd expected = state.A / std::sqrt(1 + 16 + 81 + 256 + 1) / size;
    state.A *= size;
    CHECK(largest_entry(weights(moneta, state) - expected) <= 1e-15 / size);
  }
}

template <class M> void stays_finite(const M& m) {
  fw::Random random(5);
  auto all = fw::testing::random_sequences(m, 20, random);
  auto state = fw::initial_state(m);
  for (Index i = 0; i < state.A.size(); ++i) state.A(i) = static_cast<double>(i % 3 - 1) * 1e300;
  auto ds = fw::zero_gradient(m);
  auto d = all;
  fw::set_zero(d);
  d.outputs.output.setOnes();
  fw::Checkpoints<M> checkpoints;
  fw::scan(m, state, fw::view<fw::WriteSequence<M>>(all.inputs),
           fw::view<fw::ReadSequence<M>>(all.queries), fw::view<fw::OutSequence<M>>(all.outputs),
           checkpoints);
  fw::backward(
      m, checkpoints, fw::view<fw::WriteSequence<M>>(all.inputs),
      fw::view<fw::ReadSequence<M>>(all.queries), fw::view<fw::OutGradSequence<M>>(d.outputs), ds,
      fw::view<fw::WriteGradSequence<M>>(d.inputs), fw::view<fw::ReadGradSequence<M>>(d.queries));
  CHECK(all.outputs.output.allFinite());
  CHECK(ds.A.allFinite());
  CHECK(d.inputs.key.allFinite());
}

TEST_CASE("Memora and Moneta are finite for large states", "[miras]") {
  stays_finite(fw::Memora<double>({4, 5}));
  stays_finite(fw::Moneta<double>({4, 5}));
}

TEST_CASE("Yaad refuses an unstable write", "[miras]") {
  const fw::Yaad<double> yaad({2, 1});
  const Eigen::Vector2d key(1, 0);
  const Eigen::VectorXd value = Eigen::VectorXd::Ones(1);
  const double beta = 1.5, decay = 0.6, low = 0.4, threshold = 1;
  CHECK(!yaad.violation({key, value, beta, decay, threshold}));
  CHECK(yaad.violation({key, value, beta, low, threshold}));
}

}  // namespace
