#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/gated_linear_attention.hpp>

#include "kernels/gradient_cases.hpp"

namespace {

using fw::Dynamic;
using fw::Index;
using gradients::ByChunks;

template <class S>
using PerKey = ByChunks<fw::GatedDeltaRule<S, Dynamic, Dynamic, fw::KeyValueBetaVectorDecay>>;
template <class S>
using OneDecay = ByChunks<fw::GatedLinearAttention<S, Dynamic, Dynamic, fw::KeyValueDecay>>;
template <class S> using GatedDelta = ByChunks<fw::GatedDeltaRule<S>>;
template <class S> using GatedSum = ByChunks<fw::GatedLinearAttention<S>>;
using Rules = gradients::Rules<GatedDelta, PerKey, GatedSum, OneDecay>;

TEST_CASE("kernels: gradients by chunks with decays in every size", "[kernels]") {
  gradients::check_chunks_of_every_size<Rules>();
}

TEST_CASE("kernels: gradients by chunks with decays of every length", "[kernels]") {
  gradients::check_chunks_of_every_length<Rules>();
}

TEST_CASE("kernels: gradients by chunks of decays near 0 and over intervals", "[kernels]") {
  for (const Index steps : {512, 1100}) Rules::check({6, 9}, steps);
  Rules::check({6, 9}, 600, gradients::decays_near_0);
}

// Eight decays of 1/64 in a row, and of 64; the last token has one that chunks do not take.
TEST_CASE("kernels: gradients by chunks of decays from 1/64 to 64", "[kernels]") {
  const auto change = [](auto& all) {
    auto& decay = all.inputs.decay;
    for (Index t = 0; t < 24; ++t) decay(0, t) = 1. / 64;
    for (Index t = 24; t < 44; ++t) decay(decay.rows() - 1, t) = t % 2 == 0 ? 64 : 1. / 64;
    decay(0, 44) = 100;
  };
  Rules::check({6, 9}, 45, change, 64);
}

}  // namespace
