#pragma once

#include <fastweights/any_memory/table/mapped.hpp>
#include <fastweights/feature_maps/dpfp.hpp>
#include <fastweights/feature_maps/identity.hpp>
#include <fastweights/feature_maps/normalise.hpp>
#include <fastweights/feature_maps/symmetric_power.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/gated_linear_attention.hpp>
#include <fastweights/memories/rules/normalised_gated_attention.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// Delta rules and gated memories behind a feature map.
template <class S> void add_feature_mapped(MemoryTable<S>& table) {
  table.add("PowerAttention", [](auto& o) {
    return mapped<NormalisedGatedAttention<S>>(o, SymmetricPower<2>(),
                                               S(o.number("epsilon", 1e-6)));
  });
  table.add("DpfpGatedLinearAttention",
            [](auto& o) { return mapped<GatedLinearAttention<S>>(o, Dpfp<1>()); });
  table.add("DpfpDeltaRule",
            [](auto& o) { return mapped<DeltaRule<S>>(o, SumNormalised<Dpfp<1>>()); });
  table.add("L2GatedDeltaRule",
            [](auto& o) { return mapped<GatedDeltaRule<S>>(o, L2Normalised<IdentityMap>()); });
}

}  // namespace fw::detail
