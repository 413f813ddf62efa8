#pragma once

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

using fw::Dynamic;

template <class S> void check_corrections(Index dk, Index dv, Index steps) {
  check(fw::Comba<S>({dk, dv}), steps);
  check(fw::GatedDeltaRule2<S>({dk, dv}), steps);
  check(fw::GatedOjaRule<S>({dk, dv}), steps);
  check(fw::PreconditionedDeltaRule<S>({dk, dv}), steps);
  check(fw::PreconditionedDeltaRule<S, Dynamic, Dynamic, Dynamic>({dk, dv}), steps);
  check(fw::GatedDeltaProduct<S, 2>({dk, dv}), steps);
  check(fw::GatedDeltaProduct<S, 3>({dk, dv}), steps);
  check(fw::LowRankRule<S>({dk, dv}), steps);
  check(fw::LowRankRule<S, Dynamic, Dynamic, fw::KeyValueRemoval>({dk, dv}), steps);
  check(fw::Rwkv6<S>({dk, dv}), steps);
  check(fw::Longhorn<S, Dynamic, Dynamic, fw::LonghornForm::exact>({dk, dv}), steps);
  check(fw::Mamba3<S>({dk, dv}), steps);
  check(fw::Mlstm<S>({dk, dv}), steps);
  check(fw::NormalisedGatedAttention<S>({dk, dv}), steps);
}
