#include <numbers>

#include "support/catch.hpp"
#include "support/reductions.hpp"

/// \file
/// The delta rule: what it stores, degenerate inputs, checkpoints, and the fast weight memory.

namespace {

using Eigen::MatrixXd;
using Eigen::RowVectorXd;
using fw::Index;
using fw::make_memory;
using laws::leaf;
using laws::output_difference;
using laws::outputs_of;
using laws::random_outputs;

TEST_CASE("on orthonormal keys with write strength 1 the delta rule is the sum rule",
          "[delta_rule]") {
  MatrixXd keys(6, 6);  // the cosines of a discrete cosine transform
  for (Index i = 0; i < 6; ++i)
    for (Index j = 0; j < 6; ++j)
      keys(i, j) = std::cos(std::numbers::pi * (double(i) + 0.5) * double(j) / 6) /
                   std::sqrt(j > 0 ? 3.0 : 6.0);
  const MatrixXd values = MatrixXd::Random(4, 6);
  const MatrixXd y = outputs_of(make_memory<double>("DeltaRule", {6, 4}),
                                {keys, values, RowVectorXd::Ones(6)}, {keys});
  const MatrixXd z =
      outputs_of(make_memory<double>("LinearAttention", {6, 4}), {keys, values}, {keys});
  CHECK(largest_entry(y - z) <= 1e-14);
  CHECK(largest_entry(y - values) <= 1e-14);  // each key retrieves its own value
}

TEST_CASE("the delta rule replaces the value of a key", "[delta_rule]") {
  const auto m = make_memory<double>("DeltaRule", {2, 2});
  auto s = m.initial_state();
  const Eigen::Vector2d key(0.6, 0.8), old_value(1, 2), new_value(-3, 5);
  Eigen::Vector2d y;
  m.write(s, {key, old_value, 1.0});
  m.step(s, {key, new_value, 1.0}, {key}, {y});
  CHECK(largest_entry(y - new_value) <= 1e-15);
}

TEST_CASE("equal write strengths per row agree with one write strength", "[delta_rule]") {
  const auto all = random_outputs(make_memory<double>("DeltaRule", {4, 5}), 12, 1);
  const auto& in = all.inputs;
  CHECK(output_difference(all, make_memory<double>("VectorDeltaRule", {4, 5}),
                          {in["key"], in["value"], in["beta"].replicate(5, 1)}) <= 1e-14);
}

TEST_CASE("degenerate inputs of the delta rule", "[delta_rule]") {
  const Eigen::Vector3d zero = Eigen::Vector3d::Zero(), v(1, 2, 3), k(0.5, 0.2, 0.1);
  Eigen::Vector3d y;
  SECTION("a zero key writes nothing") {
    const auto m = make_memory<double>("DeltaRule", {3, 3});
    auto s = m.initial_state();
    m.write(s, {k, v, 0.5});
    const auto before = s;
    m.write(s, {zero, v, 1.0});
    CHECK(s == before);
    CHECK(s != m.initial_state());
  }
  SECTION("reading an empty normalised memory gives zero, also without epsilon") {
    const auto m = make_memory<double>("NormalisedDeltaRule", {3, 3, {{"epsilon", 0.0}}});
    auto s = m.initial_state();
    m.read(s, {k}, {y});
    CHECK(y == zero);
  }
  SECTION("the first value of a key is written with full strength") {
    const auto m = make_memory<double>("NormalisedDeltaRule", {3, 3, {{"epsilon", 0.0}}});
    auto s = m.initial_state();
    const Eigen::Vector3d first(1, 0, 0), second(0, 1, 0);
    m.write(s, {first, v, 1.0});
    m.step(s, {second, v, 1.0}, {second}, {y});
    CHECK(largest_entry(y - v) <= 1e-15);
  }
}

TEST_CASE("fast weight memory: an epsilon that is not above 0 throws", "[fast_weight_memory]") {
  const auto make = [](double epsilon) {
    make_memory<double>("FastWeightMemory", {3, 4, {{"epsilon", epsilon}}});
  };
  CHECK_THROWS_WITH(make(0), "FastWeightMemory: epsilon is 0, expected above 0");
  CHECK_THROWS_WITH(make(-0.5), "FastWeightMemory: epsilon is -0.5, expected above 0");
  CHECK_THROWS_WITH(make(std::nan("")), "FastWeightMemory: epsilon is nan, expected above 0");
}

TEST_CASE("fast weight memory: the matrix stays inside the unit ball", "[fast_weight_memory]") {
  const auto m = make_memory<double>("FastWeightMemory", {3, 4});
  auto s = m.initial_state();
  fw::Random random(1);
  Eigen::VectorXd key(3), value(4);
  for (int t = 0; t < 50; ++t) {
    random.fill(key, 3);
    random.fill(value, 3);
    m.write(s, {key, value, 0.7});
    CHECK(leaf(s, "W").norm() <= 1 + 1e-15);
  }
  CHECK(leaf(s, "W").norm() > 0.9);
}

// W = u kᵀ of norm 1 is not divided by its norm, which would remove this gradient along W.
TEST_CASE("fast weight memory: the gradient of a matrix on the unit sphere",
          "[fast_weight_memory]") {
  const auto m = make_memory<double>("FastWeightMemory", {2, 2});
  auto ds = m.zero_gradient();
  leaf(ds, "W")(0, 0) = 1;
  const Eigen::Vector2d first(1, 0), zero(0, 0);
  MatrixXd dkey = MatrixXd::Zero(2, 1), dvalue = dkey, dquery = dkey, dbeta = MatrixXd::Zero(1, 1);
  m.backward(m.initial_state(), {first, first, 1.0}, {zero}, {zero}, ds, {dkey, dvalue, dbeta},
             {dquery});
  CHECK(dvalue == first);
  CHECK(dkey == first);
  CHECK(dbeta(0) == 1);
}

TEST_CASE("fast weight memory: inside the ball it equals a delta rule with layer norm",
          "[fast_weight_memory]") {
  const auto m = make_memory<double>("FastWeightMemory", {3, 4, {{"epsilon", 0.25}}}),
             delta = make_memory<double>("DeltaRule", {3, 4});
  auto s = m.initial_state(), t = delta.initial_state();
  fw::Random random(2);
  Eigen::VectorXd key(3), value(4), y(4), r(4);
  for (int i = 0; i < 5; ++i) {
    random.fill(key, 0.3);
    random.fill(value, 0.3);
    m.step(s, {key, value, 0.5}, {key}, {y});
    delta.step(t, {key, value, 0.5}, {key}, {r});
    REQUIRE(leaf(t, "W").norm() < 1);
    CHECK((leaf(s, "W") - leaf(t, "W")).norm() <= 1e-15);
    const Eigen::ArrayXd centred = r.array() - r.mean();
    CHECK(largest_entry(y.array() - centred / std::sqrt(centred.square().mean() + 0.25)) <= 1e-14);
  }
}

}  // namespace
