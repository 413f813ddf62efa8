#include <fastweights/algorithms/step.hpp>
#include <fastweights/memories/rules/comba.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_product.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>
#include <fastweights/memories/rules/low_rank_rule.hpp>

#include "kernels/compare.hpp"

// fw::write of one token, with and without its error. check() of compare.hpp has the state of all
// rules.
namespace {

using Eigen::Matrix;
using fw::Dynamic;

// Against error(m, state, token), an expression of the state before the write.
template <class M, class F> void check_errors(const M& m, const F& error) {
  using S = typename M::Scalar;
  Run<M> run(m, 4), plain(m, 4);
  const auto sizes = m.signature().sizes();
  INFO(M::name << " d_v " << sizes.value_size << " d_k " << sizes.key_size);
  Index t = 0;
  run.each(m, [&](const auto& w, const auto&, const auto&) {
    INFO("t " << t++);
    const Matrix<S, Dynamic, Dynamic> expected = error(run.state, w);
    Matrix<S, Dynamic, Dynamic> given(w.value.rows(), w.value.cols());
    given.setConstant(S(NAN));
    fw::write(m, run.state, w, {given});
    fw::write(m, plain.state, w);
    const double limit = 100 * double{std::numeric_limits<S>::epsilon()};
    CHECK(difference(given, expected) <= limit);
    CHECK(difference(run.state.W, plain.state.W) <= limit);
  });
}

template <class M> void check_delta(const M& m) {
  check_errors(m, [](const auto& s, const auto& w) { return (w.value - s.W * w.key).eval(); });
}

TEST_CASE("a write gives its error: delta rule of every height", "[kernels][write]") {
  for (Index dv = 1; dv <= 35; ++dv)
    for (const Index dk : {1, 2, 3, 7, 16, 33, 64, 70}) {
      check_delta(fw::DeltaRule<float>({dk, dv}));
      check_delta(fw::DeltaRule<double>({dk, dv}));
    }
}

TEST_CASE("a write gives its error: fixed sizes", "[kernels][write]") {
  check_delta(fw::DeltaRule<float, 1, 1>());
  check_delta(fw::DeltaRule<float, 5, 1>());
  check_delta(fw::DeltaRule<float, 256, 1>());
  check_delta(fw::DeltaRule<double, 64, 2>());
  check_delta(fw::DeltaRule<float, 16, 2>());
  check_delta(fw::DeltaRule<float, 40, 3>());
  check_delta(fw::DeltaRule<float, 64, 4>());
}

TEST_CASE("a write gives its error: W decays before it is looked up, or after",
          "[kernels][write]") {
  for (const Index dv : {1, 2, 3, 4, 20}) {
    check_errors(fw::GatedDeltaRule<double>({33, dv}), [](const auto& s, const auto& w) {
      return (w.value - w.decay * (s.W * w.key)).eval();
    });
    check_errors(fw::Comba<double>({33, dv}),
                 [](const auto& s, const auto& w) { return (w.value - s.W * w.lookup).eval(); });
  }
}

TEST_CASE("a write gives its errors: one per correction, each after those before",
          "[kernels][write]") {
  using M = fw::GatedDeltaProduct<double, 2>;
  for (const Index dv : {1, 3, 4, 20})
    check_errors(M({33, dv}), [](const auto& s, const auto& w) {
      Eigen::MatrixXd W = w.decay * s.W, errors(w.value.rows(), 2);
      for (Index j = 0; j < 2; ++j) {
        errors.col(j) = w.value.col(j) - W * w.key.col(j);
        W += w.beta(0, j) * errors.col(j) * w.key.col(j).transpose();
      }
      return errors;
    });
}

TEST_CASE("an error is of the value's size and apart from what is written", "[kernels][write]") {
  const fw::DeltaRule<float> m({4, 2});
  auto state = fw::initial_state(m);
  Eigen::VectorXf key = Eigen::VectorXf::Ones(4), value(2), error(3);
  value << 1, 2;
  const auto write = [&](auto&& e) { fw::write(m, state, {key, value, 0.5f}, {e}); };
  CHECK_THROWS_WITH(write(error), "DeltaRule: error has 3 rows, the memory expects 2");
  CHECK_THROWS_WITH(write(value), Catch::Matchers::ContainsSubstring("error overlaps value"));
  CHECK_THROWS_WITH(write(key.segment(1, 2)),
                    Catch::Matchers::ContainsSubstring("error overlaps key"));
  CHECK(state.W.isZero(0));
  write(error.head(2));
  CHECK(error.head(2) == value);
}

// Reads of few rows have a product of their own.
template <class M> void check_read(const M& m) {
  using S = typename M::Scalar;
  const auto sizes = m.signature().sizes();
  INFO("d_v " << sizes.value_size << " d_k " << sizes.key_size);
  auto state = fw::initial_state(m);
  state.W.setRandom();
  const Matrix<S, Dynamic, 1> query = Matrix<S, Dynamic, 1>::Random(sizes.key_size);
  Matrix<S, Dynamic, 1> y = Matrix<S, Dynamic, 1>::Constant(sizes.value_size, S(NAN));
  fw::read(m, state, {query}, {y});
  const Eigen::VectorXd expected = state.W.template cast<double>() * query.template cast<double>();
  const double limit = 10 * double{std::numeric_limits<S>::epsilon()} * double(sizes.key_size);
  CHECK((y.template cast<double>() - expected).cwiseAbs().maxCoeff() <= limit);
}

TEST_CASE("a read is W q: every height, dynamic and fixed", "[kernels][read]") {
  for (Index dv = 1; dv <= 35; ++dv)
    for (const Index dk : {1, 2, 3, 7, 16, 33, 64, 70}) {
      check_read(fw::DeltaRule<float>({dk, dv}));
      check_read(fw::DeltaRule<double>({dk, dv}));
    }
  check_read(fw::DeltaRule<float, 5, 1>());
  check_read(fw::DeltaRule<double, 64, 2>());
  check_read(fw::DeltaRule<float, 16, 2>());
  check_read(fw::DeltaRule<float, 40, 3>());
  check_read(fw::DeltaRule<float, 64, 4>());
}

// Rules without a delta term, with corrections that have no value of their own, or in a scalar
// without kernels. (Only asked, not compiled.)
static_assert(!fw::GivesErrors<fw::LinearAttention<float>>);
static_assert(!fw::GivesErrors<fw::LowRankRule<float>>);
static_assert(!fw::GivesErrors<fw::DeltaRule<long double>>);

}  // namespace
