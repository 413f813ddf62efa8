#include "support/catch.hpp"
#include "support/reductions.hpp"

/// \file
/// Sums: linear attention, the Hebbian memory and the programmer of 1991.

namespace {

using Eigen::MatrixXd;
using fw::Index;
using fw::make_memory;
using laws::leaf;
using laws::output_difference;
using laws::random_outputs;

TEST_CASE(
    "the sum rule, the Hebbian rule without decay and the programmer without activation agree",
    "[linear_attention][hebbian][programmer1991]") {
  const auto all = random_outputs(make_memory<double>("LinearAttention", {4, 5}), 20, 2);
  const auto& in = all.inputs;
  const auto hebbian =
      make_memory<double>("HebbianMemory", {4, 5, {{"decay", 1.0}, {"rate", 1.0}}});
  const auto programmer = make_memory<double>("IdentityProgrammer1991", {4, 5});
  CHECK(output_difference(all, hebbian, {in["key"], in["value"]}) <= 1e-15);
  CHECK(output_difference(all, programmer, {in["key"], in["value"]}) <= 1e-15);
}

fw::AnyMemory<float> float_counter() {
  return make_memory<float>("NormalisedLinearAttention", {1, 1, {{"epsilon", 0.0}}});
}

TEST_CASE("the normaliser keeps counting beyond 2^24 in float", "[linear_attention]") {
  const auto m = float_counter();
  auto s = m.initial_state();
  auto sum = leaf(s, "normaliser.sum"), compensation = leaf(s, "normaliser.compensation");
  sum(0) = 16777216.0f;  // 2^24 tokens of weight 1: z + 1 == z in float
  const float plain = sum(0) + 1.0f;
  CHECK(plain == sum(0));
  for (int i = 0; i < 1000; ++i) m.write(s, {1.0f, 1.0f});
  CHECK(sum(0) - compensation(0) == 16777216.0f + 1000.0f);
}

TEST_CASE("merged segments keep the rounding error of the normaliser", "[linear_attention]") {
  const auto m = float_counter();
  auto first = m.empty_segment(), second = m.empty_segment();
  auto sum = leaf<float>(first.value.object(), "normaliser.sum"),
       compensation = leaf<float>(first.value.object(), "normaliser.compensation");
  sum(0) = 16777216.0f;  // 2^24, beyond which float has even numbers only
  m.extend(first, {1.0f, 1.0f});
  m.extend(second, {2.0f, 1.0f});
  m.merge(first, second);
  CHECK(double{sum(0)} - double{compensation(0)} == 16777219);
}

TEST_CASE("degenerate reads of normalised linear attention", "[linear_attention]") {
  const auto m = make_memory<double>("NormalisedLinearAttention", {2, 2, {{"epsilon", 0.0}}});
  auto s = m.initial_state();
  const Eigen::Vector2d k(1, 0), v(3, 4), elsewhere(0, 1), zero = Eigen::Vector2d::Zero();
  Eigen::Vector2d y = v;
  m.read(s, {k}, {y});
  CHECK(y == zero);  // the memory is empty
  m.write(s, {k, v});
  m.read(s, {elsewhere}, {y});
  CHECK(y == zero);  // z·q = 0
  m.read(s, {zero}, {y});
  CHECK(y == zero);
  m.read(s, {k}, {y});
  CHECK(y == v);

  // Of a token that writes nothing.
  auto ds = m.zero_gradient();
  MatrixXd dk = MatrixXd::Zero(2, 1), dv = dk, dq = dk;
  m.backward(s, {zero, zero}, {elsewhere}, {v}, ds, {dk, dv}, {dq});
  CHECK(dq == zero);
  CHECK(leaf(ds, "W") == MatrixXd::Zero(2, 2));
}

TEST_CASE("Hebbian memory decays at its rate", "[hebbian]") {
  const auto m = make_memory<double>("HebbianMemory", {1, 1, {{"decay", 0.5}, {"rate", 2.0}}});
  auto s = m.initial_state();
  m.write(s, {1.0, 1.0});
  CHECK(leaf(s, "W")(0) == 2.0);
  m.write(s, {0.0, 1.0});
  CHECK(leaf(s, "W")(0) == 1.0);
}

}  // namespace
