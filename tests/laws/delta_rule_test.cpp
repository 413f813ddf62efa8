#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>
#include <numbers>

#include "support/laws.hpp"

namespace {

using fw::Dynamic;
using fw::Index;
using Normaliser = fw::AttentionNormaliser<double>;
template <int Dk, int Dv> using Plain = fw::DeltaRule<double, Dk, Dv>;

static_assert(fw::Mergeable<Plain<Dynamic, Dynamic>>);

TEST_CASE("delta rule obeys the laws", "[laws][delta_rule]") {
  laws::at_all_sizes([](Index dk, Index dv) { return Plain<Dynamic, Dynamic>({dk, dv}); });
}

TEST_CASE("delta rule in fixed sizes", "[laws][delta_rule]") {
  laws::all(Plain<3, 17>());
  laws::fixed_is_dynamic(Plain<3, 17>(), Plain<Dynamic, Dynamic>({.key_size = 3, .value_size = 17}),
                         false);
  laws::fixed_is_dynamic(Plain<1, 1>(), Plain<Dynamic, Dynamic>({.key_size = 1}), false);
}

TEST_CASE("on orthonormal keys with write strength 1 the delta rule is the sum rule",
          "[delta_rule]") {
  const Plain<Dynamic, Dynamic> delta({.key_size = 6, .value_size = 4});
  const fw::LinearAttention<double> sum({.key_size = 6, .value_size = 4});
  Eigen::MatrixXd keys(6, 6);  // the cosines of a discrete cosine transform
  for (Index i = 0; i < 6; ++i)
    for (Index j = 0; j < 6; ++j)
      keys(i, j) = std::cos(std::numbers::pi * (double(i) + 0.5) * double(j) / 6) /
                   std::sqrt(j > 0 ? 3.0 : 6.0);
  const Eigen::MatrixXd values = Eigen::MatrixXd::Random(4, 6);
  const Eigen::VectorXd ones = Eigen::VectorXd::Ones(6);
  Eigen::MatrixXd y(4, 6), z(4, 6);
  auto s = fw::initial_state(delta);
  auto t = fw::initial_state(sum);
  fw::scan(delta, s, {keys, values, ones}, {keys}, {y});
  fw::scan(sum, t, {keys, values}, {keys}, {z});
  CHECK(largest_entry(y - z) <= 1e-14);
  CHECK(largest_entry(y - values) <= 1e-14);  // each key retrieves its own value
}

TEST_CASE("the delta rule replaces the value of a key", "[delta_rule]") {
  const fw::DeltaRule<double, 2, 2> m;
  auto s = fw::initial_state(m);
  const Eigen::Vector2d key(0.6, 0.8), old_value(1, 2), new_value(-3, 5);
  Eigen::Vector2d y;
  fw::write(m, s, {key, old_value, 1.0});
  fw::step(m, s, {key, new_value, 1.0}, {key}, {y});
  CHECK(largest_entry(y - new_value) <= 1e-15);
}

TEST_CASE("degenerate inputs of the delta rule", "[delta_rule]") {
  const Eigen::Vector3d zero = Eigen::Vector3d::Zero(), v(1, 2, 3), k(0.5, 0.2, 0.1);
  Eigen::Vector3d y;
  SECTION("a zero key writes nothing") {
    const fw::DeltaRule<double, 3, 3> m;
    auto s = fw::initial_state(m);
    fw::write(m, s, {k, v, 0.5});
    const auto before = s;
    fw::write(m, s, {zero, v, 1.0});
    CHECK(s.W == before.W);
  }
  SECTION("reading an empty normalised memory gives zero, also without epsilon") {
    const fw::DeltaRule<double, 3, 3, Normaliser> m({.key_size = 3}, {0.0});
    auto s = fw::initial_state(m);
    fw::read(m, s, {k}, {y});
    CHECK(y == zero);
  }
  SECTION("the first value of a key is written with full strength") {
    const fw::DeltaRule<double, 3, 3, Normaliser> m({.key_size = 3}, {0.0});
    auto s = fw::initial_state(m);
    const Eigen::Vector3d first(1, 0, 0), second(0, 1, 0);
    fw::write(m, s, {first, v, 1.0});
    fw::step(m, s, {second, v, 1.0}, {second}, {y});
    CHECK(largest_entry(y - v) <= 1e-15);
  }
}

TEST_CASE("backward requires the checkpoints of the same sequence", "[delta_rule]") {
  using M = Plain<Dynamic, Dynamic>;
  const M m({.key_size = 2, .value_size = 3});
  fw::Random random(1);
  auto all = fw::testing::random_sequences(m, 6, random);
  auto grads = all;
  auto ds = fw::zero_gradient(m);
  fw::Checkpoints<M> checkpoints;
  const auto run = [&] {
    fw::backward(m, checkpoints, fw::view<fw::WriteSequence<M>>(all.inputs),
                 fw::view<fw::ReadSequence<M>>(all.queries),
                 fw::view<fw::OutGradSequence<M>>(all.outputs), ds,
                 fw::view<fw::WriteGradSequence<M>>(grads.inputs),
                 fw::view<fw::ReadGradSequence<M>>(grads.queries));
  };
  CHECK_THROWS_AS(run(), std::invalid_argument);  // no forward pass
  auto state = fw::initial_state(m);
  auto longer = fw::testing::random_sequences(m, 9, random);
  fw::scan(m, state, fw::view<fw::WriteSequence<M>>(longer.inputs),
           fw::view<fw::ReadSequence<M>>(longer.queries),
           fw::view<fw::OutSequence<M>>(longer.outputs), checkpoints);
  CHECK_THROWS_AS(run(), std::invalid_argument);  // the forward pass of another sequence
}

}  // namespace
