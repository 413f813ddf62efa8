#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/fast_weight_memory.hpp>

#include "support/laws.hpp"

namespace {

using fw::Dynamic;
using fw::Index;
template <int Dk = Dynamic, int Dv = Dk> using Rule = fw::FastWeightMemory<double, Dk, Dv>;

TEST_CASE("fast weight memory obeys the laws", "[laws][fast_weight_memory]") {
  laws::at_all_sizes([](Index dk, Index dv) { return Rule<>({dk, dv}); });
}

TEST_CASE("fast weight memory in fixed sizes", "[laws][fast_weight_memory]") {
  laws::fixed_is_dynamic(Rule<3, 17>(), Rule<>({.key_size = 3, .value_size = 17}), false);
}

TEST_CASE("fast weight memory: an epsilon that is not above 0 throws", "[fast_weight_memory]") {
  CHECK_THROWS_WITH(Rule<>({.key_size = 3, .value_size = 4}, 0),
                    "FastWeightMemory: epsilon is 0, expected above 0");
  CHECK_THROWS_WITH(Rule<>({.key_size = 3, .value_size = 4}, -0.5),
                    "FastWeightMemory: epsilon is -0.5, expected above 0");
  CHECK_THROWS_WITH(Rule<>({.key_size = 3, .value_size = 4}, std::nan("")),
                    "FastWeightMemory: epsilon is nan, expected above 0");
}

TEST_CASE("fast weight memory: the matrix stays inside the unit ball", "[fast_weight_memory]") {
  const Rule<> m({.key_size = 3, .value_size = 4});
  auto s = fw::initial_state(m);
  fw::Random random(1);
  for (int t = 0; t < 50; ++t) {
    Eigen::VectorXd key(3), value(4);
    random.fill(key, 3);
    random.fill(value, 3);
    double beta = 0.7;
    fw::write(m, s, {key, value, beta});
    CHECK(s.W.norm() <= 1 + 1e-15);
  }
  CHECK(s.W.norm() > 0.9);
}

// W = u kᵀ of norm 1 is not divided by its norm, which would remove this gradient along W.
TEST_CASE("fast weight memory: the gradient of a matrix on the unit sphere",
          "[fast_weight_memory]") {
  const Rule<> m({.key_size = 2, .value_size = 2});
  const auto s = fw::initial_state(m);
  auto ds = fw::zero_gradient(m);
  ds.W(0, 0) = 1;
  const Eigen::Vector2d first(1, 0);
  Eigen::Vector2d dkey(0, 0), dvalue(0, 0);
  double beta = 1, dbeta = 0;
  m.write_vjp(s, {first, first, beta}, ds, {dkey, dvalue, dbeta});
  CHECK(dvalue == first);
  CHECK(dkey == first);
  CHECK(dbeta == 1);
}

TEST_CASE("fast weight memory: inside the ball it equals a delta rule with layer norm",
          "[fast_weight_memory]") {
  const Rule<> m({.key_size = 3, .value_size = 4}, 0.25);
  const fw::DeltaRule<double> delta({.key_size = 3, .value_size = 4});
  auto s = fw::initial_state(m);
  auto t = fw::initial_state(delta);
  fw::Random random(2);
  Eigen::VectorXd key(3), value(4), y(4), r(4);
  for (int i = 0; i < 5; ++i) {
    random.fill(key, 0.3);
    random.fill(value, 0.3);
    double beta = 0.5;
    fw::step(m, s, {key, value, beta}, {key}, {y});
    fw::step(delta, t, {key, value, beta}, {key}, {r});
    REQUIRE(t.W.norm() < 1);
    CHECK((s.W - t.W).norm() <= 1e-15);
    const Eigen::ArrayXd centred = r.array() - r.mean();
    CHECK(largest_entry(y.array() - centred / std::sqrt(centred.square().mean() + 0.25)) <= 1e-14);
  }
}

}  // namespace
