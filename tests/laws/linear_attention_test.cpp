#include <fastweights/memories/rules/hebbian.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>
#include <fastweights/memories/rules/programmer1991.hpp>

#include "support/laws.hpp"

namespace {

using fw::Dynamic;
using fw::Index;
template <int Dk, int Dv> using Sum = fw::LinearAttention<double, Dk, Dv>;
template <int Dk, int Dv>
using Normalised = fw::LinearAttention<double, Dk, Dv, fw::AttentionNormaliser<double>>;

TEST_CASE("linear attention obeys the laws", "[laws][linear_attention]") {
  laws::at_all_sizes([](Index dk, Index dv) { return Sum<Dynamic, Dynamic>({dk, dv}); });
}

TEST_CASE("normalised linear attention obeys the laws", "[laws][linear_attention]") {
  laws::at_all_sizes(
      [](Index dk, Index dv) {
        return Normalised<Dynamic, Dynamic>({dk, dv});
      },
      /*positive=*/true);
}

TEST_CASE("linear attention in fixed sizes", "[laws][linear_attention]") {
  laws::all(Normalised<17, 3>(), true);
  laws::fixed_is_dynamic(Sum<1, 1>(), Sum<Dynamic, Dynamic>({.key_size = 1}), false);
  laws::fixed_is_dynamic(Normalised<17, 3>(),
                         Normalised<Dynamic, Dynamic>({.key_size = 17, .value_size = 3}), true);
}

TEST_CASE(
    "the sum rule, the Hebbian rule without decay and the programmer without activation agree",
    "[linear_attention][hebbian][programmer1991]") {
  const Sum<Dynamic, Dynamic> sum({.key_size = 4, .value_size = 5});
  const fw::HebbianMemory<double> hebbian({.key_size = 4, .value_size = 5}, {1.0, 1.0});
  const fw::Programmer1991<double, Dynamic, Dynamic, fw::Identity> programmer(
      {.key_size = 4, .value_size = 5});
  static_assert(fw::Interchangeable<Sum<Dynamic, Dynamic>, fw::HebbianMemory<double>>);
  static_assert(!fw::Interchangeable<Sum<Dynamic, Dynamic>, fw::HebbianMemory<float>>);
  fw::Random random(2);
  auto a = fw::testing::random_sequences(sum, 20, random);
  auto s = fw::initial_state(sum);
  laws::scan(sum, s, a);
  CHECK(laws::output_difference(a, hebbian, {a.inputs.key, a.inputs.value}) <= 1e-15);
  CHECK(laws::output_difference(a, programmer, {a.inputs.key, a.inputs.value}) <= 1e-15);
}

TEST_CASE("the normaliser keeps counting beyond 2^24 in float", "[linear_attention]") {
  const fw::LinearAttention<float, 1, 1, fw::AttentionNormaliser<float>> m({.key_size = 1}, {0.0f});
  auto s = fw::initial_state(m);
  const Eigen::Matrix<float, 1, 1> one = Eigen::Matrix<float, 1, 1>::Ones();
  s.normaliser.sum[0] = 16777216.0f;  // 2^24 tokens of weight 1: z + 1 == z in float
  const float plain = s.normaliser.sum[0] + 1.0f;
  CHECK(plain == s.normaliser.sum[0]);
  for (int i = 0; i < 1000; ++i) fw::write(m, s, {one, one});
  CHECK(s.normaliser.sum[0] - s.normaliser.compensation[0] == 16777216.0f + 1000.0f);
}

TEST_CASE("merged segments keep the rounding error of the normaliser", "[linear_attention]") {
  const fw::LinearAttention<float, 1, 1, fw::AttentionNormaliser<float>> m({.key_size = 1}, {0.0f});
  const Eigen::Matrix<float, 1, 1> one = Eigen::Matrix<float, 1, 1>::Ones(), two = 2 * one;
  auto first = m.empty_segment(), second = m.empty_segment();
  first.normaliser.sum[0] = 16777216.0f;  // 2^24, beyond which float has even numbers only
  m.extend(first, {one, one});
  m.extend(second, {two, one});
  m.merge(first, second);
  CHECK(double{first.normaliser.sum[0]} - double{first.normaliser.compensation[0]} == 16777219);
}

TEST_CASE("degenerate reads of normalised linear attention", "[linear_attention]") {
  const fw::LinearAttention<double, 2, 2, fw::AttentionNormaliser<double>> m({.key_size = 2},
                                                                             {0.0});
  auto s = fw::initial_state(m);
  const Eigen::Vector2d k(1, 0), v(3, 4), elsewhere(0, 1), zero = Eigen::Vector2d::Zero();
  Eigen::Vector2d y = v;
  fw::read(m, s, {k}, {y});
  CHECK(y == zero);  // the memory is empty
  fw::write(m, s, {k, v});
  fw::read(m, s, {elsewhere}, {y});
  CHECK(y == zero);  // z·q = 0
  fw::read(m, s, {zero}, {y});
  CHECK(y == zero);
  fw::read(m, s, {k}, {y});
  CHECK(y == v);

  auto ds = fw::zero_gradient(m);
  Eigen::Vector2d dq = zero;
  m.read_vjp(s, {elsewhere}, {v}, ds, {dq});
  CHECK(dq == zero);
  CHECK(ds.W == Eigen::Matrix2d::Zero());
}

}  // namespace
