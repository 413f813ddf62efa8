#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/gated_linear_attention.hpp>
#include <fastweights/memories/rules/hebbian.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>

#include "kernels/gradients.hpp"

namespace {

using gradients::check;

using fw::Dynamic;
using fw::Index;

template <class S>
using PerKey = fw::GatedDeltaRule<S, Dynamic, Dynamic, fw::KeyValueBetaVectorDecay>;
template <class S>
using OneDecay = fw::GatedLinearAttention<S, Dynamic, Dynamic, fw::KeyValueDecay>;

void check_rules(Index dk, Index dv, Index steps) {
  using Long = long double;
  check(fw::LinearAttention<double>({dk, dv}), fw::LinearAttention<Long>({dk, dv}), steps);
  check(fw::DeltaRule<double>({dk, dv}), fw::DeltaRule<Long>({dk, dv}), steps);
  check(fw::HebbianMemory<double>({dk, dv}), fw::HebbianMemory<Long>({dk, dv}), steps);
  check(fw::GatedDeltaRule<double>({dk, dv}), fw::GatedDeltaRule<Long>({dk, dv}), steps);
  check(PerKey<double>({dk, dv}), PerKey<Long>({dk, dv}), steps);
  check(fw::GatedLinearAttention<double>({dk, dv}), fw::GatedLinearAttention<Long>({dk, dv}),
        steps);
  check(OneDecay<double>({dk, dv}), OneDecay<Long>({dk, dv}), steps);
}

TEST_CASE("kernels: gradients in every size", "[kernels]") {
  for (const Index dv : {1, 2, 3, 5, 6, 7, 8, 9, 11, 16, 17, 33, 64})
    for (const Index dk : {1, 3, 8, 17, 40}) check_rules(dk, dv, 5);
  // Large matrices, which go chunk by chunk.
  for (const Index size : {1, 3, 17, 33}) {
    check_rules(size, 3136 / size + 1, 11);
    check_rules(3136 / size + 1, size, 11);
  }
  for (const Index dv : {49, 64, 73})
    for (const Index dk : {64, 66, 95, 130}) check_rules(dk, dv, 11);
}

TEST_CASE("kernels: gradients of sequences of every length", "[kernels]") {
  for (const Index steps : {0, 1, 2, 3, 63, 64, 65, 66, 127, 128, 129, 200})
    check_rules(9, 6, steps);
  // The gradient of a single decay is a sum over W and G, which does not cancel for this size.
  for (const Index steps : {0, 1, 2, 7, 8, 9, 12, 13, 16, 31, 130}) check_rules(61, 55, steps);
}

// Matrices that go pair by pair, and chunk by chunk unless a key row has its own decay.
constexpr fw::Sizes<> small{6, 9}, large{59, 57};

TEST_CASE("kernels: gradients for constant decays of any size", "[kernels]") {
  for (const double decay : {0.97, 0.5, 1e-8, 0.0, -0.3, 1.5})
    for (const Index steps : {5, 65, 600})
      for (const auto& sizes : {small, large})
        check(fw::HebbianMemory<double>(sizes, {decay, 0.5}),
              fw::HebbianMemory<long double>(sizes, {decay, 0.5}), steps);
}

// All four rules with input decays.
template <class Change> void check_decays(Index steps, double looser, Change change) {
  using Long = long double;
  for (const auto& sizes : {small, large}) {
    check(fw::GatedDeltaRule<double>(sizes), fw::GatedDeltaRule<Long>(sizes), steps, change,
          looser);
    check(PerKey<double>(sizes), PerKey<Long>(sizes), steps, change, looser);
    check(fw::GatedLinearAttention<double>(sizes), fw::GatedLinearAttention<Long>(sizes), steps,
          change, looser);
    check(OneDecay<double>(sizes), OneDecay<Long>(sizes), steps, change, looser);
  }
}

TEST_CASE("kernels: gradients of decays over more than one interval", "[kernels]") {
  for (const Index steps : {511, 512, 513, 1100}) check_decays(steps, 1, [](auto&) {});
}

TEST_CASE("kernels: gradients of decays near 0 need no division", "[kernels]") {
  check_decays(600, 1, [](auto& all) {
    for (const Index t : {0, 1, 5, 6, 40, 511, 512, 599}) all.inputs.decay.col(t).setZero();
    for (const Index t : {7, 8, 9, 31, 514}) all.inputs.decay(0, t) = 1e-200;
  });
}

// Division by a decay of 1/64 makes rounding errors 64 times larger.
TEST_CASE("kernels: gradients of the smallest decays with division", "[kernels]") {
  check_decays(300, 64, [](auto& all) {
    for (Index t = 0; t < 300; t += 7) all.inputs.decay.col(t).setConstant(1. / 64);
  });
}

TEST_CASE("kernels: gradients for sizes fixed at compile time", "[kernels]") {
  check(fw::DeltaRule<double, 3, 17>(),
        fw::DeltaRule<long double>({.key_size = 3, .value_size = 17}), 9);
  check(fw::DeltaRule<double, 5, 1>(), fw::DeltaRule<long double>({.key_size = 5, .value_size = 1}),
        9);
  check(fw::LinearAttention<double, 1, 5>(),
        fw::LinearAttention<long double>({.key_size = 1, .value_size = 5}), 9);
}

}  // namespace
