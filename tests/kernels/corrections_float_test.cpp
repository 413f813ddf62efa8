#include <fastweights/memories/adaptors/deferred.hpp>
#include <fastweights/memories/rules/comba.hpp>
#include <fastweights/memories/rules/gated_delta_product.hpp>
#include <fastweights/memories/rules/gated_delta_rule_2.hpp>
#include <fastweights/memories/rules/gated_oja_rule.hpp>
#include <fastweights/memories/rules/longhorn.hpp>
#include <fastweights/memories/rules/low_rank_rule.hpp>
#include <fastweights/memories/rules/mamba3.hpp>
#include <fastweights/memories/rules/mlstm.hpp>
#include <fastweights/memories/rules/normalised_gated_attention.hpp>
#include <fastweights/memories/rules/preconditioned_delta_rule.hpp>
#include <fastweights/memories/rules/rwkv6.hpp>

#include "kernels/compare.hpp"

/// \file
/// Rules whose look-up key is not the write key, that write several times per token, or that read
/// first; in float, and in fixed sizes.

namespace {

using fw::Dynamic;

void check_rules(Index dk, Index dv, Index steps) {
  check(fw::Comba<float>({dk, dv}), steps);
  check(fw::GatedDeltaRule2<float>({dk, dv}), steps);
  check(fw::GatedOjaRule<float>({dk, dv}), steps);
  check(fw::PreconditionedDeltaRule<float>({dk, dv}), steps);
  check(fw::PreconditionedDeltaRule<float, Dynamic, Dynamic, Dynamic>({dk, dv}), steps);
  check(fw::GatedDeltaProduct<float, 2>({dk, dv}), steps);
  check(fw::GatedDeltaProduct<float, 3>({dk, dv}), steps);
  check(fw::LowRankRule<float>({dk, dv}), steps);
  check(fw::LowRankRule<float, Dynamic, Dynamic, fw::KeyValueRemoval>({dk, dv}), steps);
  check(fw::Rwkv6<float>({dk, dv}), steps);
  check(fw::Longhorn<float, Dynamic, Dynamic, fw::LonghornForm::exact>({dk, dv}), steps);
  check(fw::Mamba3<float>({dk, dv}), steps);
  check(fw::Mlstm<float>({dk, dv}), steps);
  check(fw::NormalisedGatedAttention<float>({dk, dv}), steps);
}

TEST_CASE("corrections: float", "[kernels]") {
  for (const Index d : {3, 16, 65}) check_rules(d, d, 7);
}

// Nothing looks up W for v kᵀ, so that no product with W overflows.
TEST_CASE("corrections: a write that looks up nothing multiplies no infinity by 0", "[kernels]") {
  using M = fw::LowRankRule<float>;
  const auto check = [](const auto& m) {
    auto state = fw::initial_state(m);
    state.W.setConstant(3e38f);
    const Eigen::VectorXf zero = Eigen::VectorXf::Zero(2), ones = Eigen::VectorXf::Ones(2);
    const Eigen::VectorXf key = 2 * Eigen::VectorXf::Unit(2, 0), query = key / 4;
    Eigen::VectorXf y(2);
    fw::step(m, state, {key, zero, zero, zero, ones}, {query}, {y});
    CHECK(y == Eigen::VectorXf::Constant(2, 1.5e38f));
  };
  check(M({.key_size = 2}));
  check(fw::Deferred(M({.key_size = 2})));
}

TEST_CASE("corrections: sizes fixed at compile time", "[kernels]") {
  check(fw::Comba<double, 5, 3>(), 9);
  check(fw::GatedDeltaRule2<double, 8, 8>(), 9);
  check(fw::GatedDeltaProduct<double, 2, 4, 12>(), 9);
  check(fw::LowRankRule<double, 16, 16>(), 9);
  check(fw::PreconditionedDeltaRule<double, 7, 1>(), 9);
}

}  // namespace
