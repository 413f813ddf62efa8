#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/gated_linear_attention.hpp>

#include "kernels/gradient_cases.hpp"

namespace {

using fw::Dynamic;
using fw::Index;

template <class S>
using PerKey = fw::GatedDeltaRule<S, Dynamic, Dynamic, fw::KeyValueBetaVectorDecay>;
template <class S>
using OneDecay = fw::GatedLinearAttention<S, Dynamic, Dynamic, fw::KeyValueDecay>;
template <class S> using GatedDelta = fw::GatedDeltaRule<S>;
template <class S> using GatedSum = fw::GatedLinearAttention<S>;
using Rules = gradients::Rules<GatedDelta, PerKey, GatedSum, OneDecay>;

TEST_CASE("kernels: gradients with decays in every size", "[kernels]") {
  gradients::check_every_size<Rules>();
}

TEST_CASE("kernels: gradients with decays of every length", "[kernels]") {
  gradients::check_every_length<Rules>();
}

void check_decays(Index steps, double looser, const auto& change) {
  for (const auto& sizes : {gradients::small, gradients::large})
    Rules::check(sizes, steps, change, looser);
}

TEST_CASE("kernels: gradients of decays over more than one interval", "[kernels]") {
  for (const Index steps : {511, 512, 513, 1100}) check_decays(steps, 1, [](auto&) {});
}

TEST_CASE("kernels: gradients of decays near 0 need no division", "[kernels]") {
  check_decays(600, 1, gradients::decays_near_0);
}

// Division by a decay of 1/64 makes rounding errors 64 times larger.
TEST_CASE("kernels: gradients of the smallest decays with division", "[kernels]") {
  check_decays(300, 64, [](auto& all) {
    for (Index t = 0; t < 300; t += 7) all.inputs.decay.col(t).setConstant(1. / 64);
  });
}

}  // namespace
