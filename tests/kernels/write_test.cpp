#include <fastweights/memories/rules/comba.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_product.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>
#include <fastweights/memories/rules/low_rank_rule.hpp>

#include "kernels/write_checks.hpp"

namespace {

TEST_CASE("a write gives its error: delta rule of every height", "[kernels][write]") {
  for (Index dv = 1; dv <= 35; ++dv)
    for (const Index dk : {1, 2, 3, 7, 16, 33, 64, 70}) {
      check_delta(fw::DeltaRule<float>({dk, dv}));
      check_delta(fw::DeltaRule<double>({dk, dv}));
    }
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

TEST_CASE("a read is W q: every height", "[kernels][read]") {
  for (Index dv = 1; dv <= 35; ++dv)
    for (const Index dk : {1, 2, 3, 7, 16, 33, 64, 70}) {
      check_read(fw::DeltaRule<float>({dk, dv}));
      check_read(fw::DeltaRule<double>({dk, dv}));
    }
}

// Rules without a delta term, with corrections that have no value of their own, or in a scalar
// without kernels. (Only asked, not compiled.)
static_assert(!fw::GivesErrors<fw::LinearAttention<float>>);
static_assert(!fw::GivesErrors<fw::LowRankRule<float>>);
static_assert(!fw::GivesErrors<fw::DeltaRule<long double>>);

}  // namespace
