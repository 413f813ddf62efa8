#include <fastweights/memories/rules/gated_linear_attention.hpp>
#include <fastweights/memories/rules/hebbian.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>

#include "support/laws.hpp"

namespace {

using fw::Dynamic;
using fw::Index;
template <int Dk, int Dv> using VectorGated = fw::GatedLinearAttention<double, Dk, Dv>;
template <int Dk, int Dv>
using Simple = fw::GatedLinearAttention<double, Dk, Dv, fw::KeyValueDecay>;

TEST_CASE("gated linear attention obeys the laws", "[laws][gated_linear_attention]") {
  laws::at_all_sizes([](Index dk, Index dv) { return VectorGated<Dynamic, Dynamic>({dk, dv}); });
}

TEST_CASE("gated linear attention with one decay per token obeys the laws",
          "[laws][gated_linear_attention]") {
  laws::at_all_sizes([](Index dk, Index dv) { return Simple<Dynamic, Dynamic>({dk, dv}); });
}

TEST_CASE("gated linear attention in fixed sizes", "[laws][gated_linear_attention]") {
  laws::fixed_is_dynamic(VectorGated<1, 1>(), VectorGated<Dynamic, Dynamic>({.key_size = 1}),
                         false);
  laws::fixed_is_dynamic(VectorGated<17, 3>(),
                         VectorGated<Dynamic, Dynamic>({.key_size = 17, .value_size = 3}), false);
  laws::fixed_is_dynamic(Simple<3, 17>(),
                         Simple<Dynamic, Dynamic>({.key_size = 3, .value_size = 17}), false);
}

TEST_CASE("gated linear attention without decay is linear attention", "[gated_linear_attention]") {
  const fw::LinearAttention<double> sum({.key_size = 4, .value_size = 5});
  const VectorGated<Dynamic, Dynamic> vector({.key_size = 4, .value_size = 5});
  const Simple<Dynamic, Dynamic> simple({.key_size = 4, .value_size = 5});
  fw::Random random(2);
  auto a = fw::testing::random_sequences(sum, 20, random);
  const Eigen::MatrixXd ones = Eigen::MatrixXd::Ones(4, 20);
  const Eigen::VectorXd one = Eigen::VectorXd::Ones(20);
  auto s = fw::initial_state(sum);
  laws::scan(sum, s, a);
  CHECK(laws::output_difference(a, vector, {a.inputs.key, a.inputs.value, ones}) <= 1e-15);
  CHECK(laws::output_difference(a, simple, {a.inputs.key, a.inputs.value, one}) <= 1e-15);
}

TEST_CASE("gated linear attention with constant decay is retention, the Hebbian memory of rate 1",
          "[gated_linear_attention][hebbian]") {
  const fw::HebbianMemory<double> retention({.key_size = 4, .value_size = 5}, {0.9, 1.0});
  const Simple<Dynamic, Dynamic> simple({.key_size = 4, .value_size = 5});
  fw::Random random(3);
  auto a = fw::testing::random_sequences(retention, 20, random);
  const Eigen::VectorXd decay = Eigen::VectorXd::Constant(20, 0.9);
  auto s = fw::initial_state(retention);
  laws::scan(retention, s, a);
  CHECK(laws::output_difference(a, simple, {a.inputs.key, a.inputs.value, decay}) <= 1e-15);
}

TEST_CASE("gated linear attention: equal decays per key row agree with one decay",
          "[gated_linear_attention]") {
  const VectorGated<Dynamic, Dynamic> vector({.key_size = 4, .value_size = 5});
  const Simple<Dynamic, Dynamic> simple({.key_size = 4, .value_size = 5});
  fw::Random random(4);
  auto a = fw::testing::random_sequences(simple, 20, random);
  const Eigen::MatrixXd rows = a.inputs.decay.replicate(4, 1);
  auto s = fw::initial_state(simple);
  laws::scan(simple, s, a);
  CHECK(laws::output_difference(a, vector, {a.inputs.key, a.inputs.value, rows}) <= 1e-15);
}

TEST_CASE("every key row has its own decay", "[gated_linear_attention]") {
  const VectorGated<2, 2> m;
  auto s = fw::initial_state(m);
  const Eigen::Vector2d ones(1, 1), none(0, 0), decay(0.5, 0.25);
  fw::write(m, s, {ones, ones, ones});
  fw::write(m, s, {none, ones, decay});
  CHECK(s.W == (Eigen::Matrix2d() << 0.5, 0.25, 0.5, 0.25).finished());
}

TEST_CASE("chunks of gated linear attention do not divide by decays", "[gated_linear_attention]") {
  const Simple<Dynamic, Dynamic> m({.key_size = 4, .value_size = 5});
  fw::Random random(5);
  auto a = fw::testing::random_sequences(m, 40, random);
  for (const Index t : {0, 7, 8, 39}) a.inputs.decay[t] = 0;
  for (const Index t : {11, 12, 13, 14}) a.inputs.decay[t] = 1e-200;
  auto b = a;
  auto s = fw::testing::random_state(m, 6, random);
  auto chunked = s;
  laws::scan(m, s, a);
  fw::chunked_scan(m, chunked, {b.inputs.key, b.inputs.value, b.inputs.decay}, {b.queries.query},
                   {b.outputs.output}, 40);
  CHECK(laws::difference(b.outputs, a.outputs) <= 1e-14);
  CHECK(laws::difference(chunked, s) <= 1e-14);
}

}  // namespace
