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
/// first.

namespace {

using fw::Dynamic;

void check_rules(Index dk, Index dv, Index steps) {
  check(fw::Comba<double>({dk, dv}), steps);
  check(fw::GatedDeltaRule2<double>({dk, dv}), steps);
  check(fw::GatedOjaRule<double>({dk, dv}), steps);
  check(fw::PreconditionedDeltaRule<double>({dk, dv}), steps);
  check(fw::PreconditionedDeltaRule<double, Dynamic, Dynamic, Dynamic>({dk, dv}), steps);
  check(fw::GatedDeltaProduct<double, 2>({dk, dv}), steps);
  check(fw::GatedDeltaProduct<double, 3>({dk, dv}), steps);
  check(fw::LowRankRule<double>({dk, dv}), steps);
  check(fw::LowRankRule<double, Dynamic, Dynamic, fw::KeyValueRemoval>({dk, dv}), steps);
  check(fw::Rwkv6<double>({dk, dv}), steps);
  check(fw::Longhorn<double, Dynamic, Dynamic, fw::LonghornForm::exact>({dk, dv}), steps);
  check(fw::Mamba3<double>({dk, dv}), steps);
  check(fw::Mlstm<double>({dk, dv}), steps);
  check(fw::NormalisedGatedAttention<double>({dk, dv}), steps);
}

TEST_CASE("corrections: square memories", "[kernels]") {
  for (const Index d : {1, 2, 3, 7, 8, 9, 16, 17, 31, 33, 63, 64, 65, 100, 128})
    check_rules(d, d, 7);
}

TEST_CASE("corrections: d_v differs from d_k", "[kernels]") {
  for (const Index dv : {1, 17, 65})
    for (const Index dk : {1, 3, 40}) check_rules(dk, dv, 5);
}

TEST_CASE("corrections: sequences of every length", "[kernels]") {
  for (const Index steps : {1, 2, 3, 15, 16, 17, 63, 64, 65, 130}) check_rules(19, 18, steps);
}

}  // namespace
