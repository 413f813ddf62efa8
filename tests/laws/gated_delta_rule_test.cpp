#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>

#include "support/laws.hpp"

namespace {

using fw::Dynamic;
using fw::Index;
template <int Dk, int Dv> using Gated = fw::GatedDeltaRule<double, Dk, Dv>;
template <int Dk, int Dv>
using VectorDecay = fw::GatedDeltaRule<double, Dk, Dv, fw::KeyValueBetaVectorDecay>;

TEST_CASE("gated delta rule obeys the laws", "[laws][gated_delta_rule]") {
  laws::at_all_sizes([](Index dk, Index dv) { return Gated<Dynamic, Dynamic>({dk, dv}); });
}

TEST_CASE("gated delta rule with one decay per key row obeys the laws",
          "[laws][gated_delta_rule]") {
  laws::at_all_sizes([](Index dk, Index dv) { return VectorDecay<Dynamic, Dynamic>({dk, dv}); });
}

TEST_CASE("gated delta rule in fixed sizes", "[laws][gated_delta_rule]") {
  laws::all(VectorDecay<17, 3>());
  laws::fixed_is_dynamic(Gated<1, 1>(), Gated<Dynamic, Dynamic>({.key_size = 1}), false);
  laws::fixed_is_dynamic(Gated<3, 17>(), Gated<Dynamic, Dynamic>({.key_size = 3, .value_size = 17}),
                         false);
  laws::fixed_is_dynamic(VectorDecay<17, 3>(),
                         VectorDecay<Dynamic, Dynamic>({.key_size = 17, .value_size = 3}), false);
}

TEST_CASE("the gated delta rule without decay is the delta rule", "[gated_delta_rule]") {
  const fw::DeltaRule<double> delta({.key_size = 4, .value_size = 5});
  const Gated<Dynamic, Dynamic> gated({.key_size = 4, .value_size = 5});
  const VectorDecay<Dynamic, Dynamic> vector({.key_size = 4, .value_size = 5});
  fw::Random random(2);
  auto a = fw::testing::random_sequences(delta, 20, random);
  const auto& in = a.inputs;
  const Eigen::MatrixXd ones = Eigen::MatrixXd::Ones(4, 20);
  const Eigen::VectorXd one = Eigen::VectorXd::Ones(20);
  auto s = fw::initial_state(delta);
  laws::scan(delta, s, a);
  CHECK(laws::output_difference(a, gated, {in.key, in.value, in.beta, one}) <= 1e-15);
  CHECK(laws::output_difference(a, vector, {in.key, in.value, in.beta, ones}) <= 1e-15);
}

TEST_CASE("gated delta rule: equal decays per key row agree with one decay", "[gated_delta_rule]") {
  const Gated<Dynamic, Dynamic> gated({.key_size = 4, .value_size = 5});
  const VectorDecay<Dynamic, Dynamic> vector({.key_size = 4, .value_size = 5});
  fw::Random random(4);
  auto a = fw::testing::random_sequences(gated, 20, random);
  const auto& in = a.inputs;
  const Eigen::MatrixXd rows = in.decay.replicate(4, 1);
  auto s = fw::initial_state(gated);
  laws::scan(gated, s, a);
  CHECK(laws::output_difference(a, vector, {in.key, in.value, in.beta, rows}) <= 1e-15);
}

TEST_CASE("the gated delta rule decays first, then replaces the value of a key",
          "[gated_delta_rule]") {
  const Gated<2, 2> m;
  auto s = fw::initial_state(m);
  const Eigen::Vector2d first(1, 0), second(0, 1), old_value(1, 2), new_value(-3, 5);
  fw::write(m, s, {first, old_value, 1.0, 1.0});
  fw::write(m, s, {second, old_value, 1.0, 1.0});
  fw::write(m, s, {first, new_value, 1.0, 0.5});
  CHECK(s.W.col(0) == new_value);        // independent of the decay
  CHECK(s.W.col(1) == 0.5 * old_value);  // the value of the other key only decays
}

TEST_CASE("chunks of the gated delta rule do not divide by decays", "[gated_delta_rule]") {
  const Gated<Dynamic, Dynamic> m({.key_size = 4, .value_size = 5});
  fw::Random random(5);
  auto a = fw::testing::random_sequences(m, 40, random);
  for (const Index t : {0, 7, 8, 39}) a.inputs.decay[t] = 0;
  for (const Index t : {11, 12, 13, 14}) a.inputs.decay[t] = 1e-200;
  auto b = a;
  const auto& in = b.inputs;
  auto s = fw::testing::random_state(m, 6, random);
  auto chunked = s;
  laws::scan(m, s, a);
  fw::chunked_scan(m, chunked, {in.key, in.value, in.beta, in.decay}, {b.queries.query},
                   {b.outputs.output}, 40);
  CHECK(laws::difference(b.outputs, a.outputs) <= 1e-14);
  CHECK(laws::difference(chunked, s) <= 1e-14);
}

}  // namespace
