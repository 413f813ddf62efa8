#pragma once

#include <fastweights/any_memory/table.hpp>
#include <fastweights/feature_maps/dpfp.hpp>
#include <fastweights/feature_maps/elu_plus_one.hpp>
#include <fastweights/feature_maps/identity.hpp>
#include <fastweights/feature_maps/normalise.hpp>
#include <fastweights/feature_maps/symmetric_power.hpp>
#include <fastweights/feature_maps/taylor.hpp>
#include <fastweights/memories/adaptors/feature_mapped.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>
#include <fastweights/memories/rules/normalised_gated_attention.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

// A memory behind a feature map, with keys of key_size rows before the map. `last` are arguments of
// the memory after its sizes.
template <class M, class Map, class Options, class... Last>
auto mapped(Options& o, const Last&... last) {
  const Sizes<> sizes = o.sizes();
  const Map map;
  check_size<Dynamic>(M::name, "key_size", sizes.key_size);
  return FeatureMapped<M, Map>(M({map.features(sizes.key_size), sizes.value_size}, last...),
                               sizes.key_size, map);
}
// A normalised sum behind a feature map.
template <class S, class Map, class Options> auto mapped_sum(Options& o) {
  using Normaliser = AttentionNormaliser<S>;
  return mapped<LinearAttention<S, Dynamic, Dynamic, Normaliser>, Map>(
      o, Normaliser{S(o.number("epsilon", 1e-5))});
}

/// Memories behind a feature map.
template <class S> void add_feature_mapped(MemoryTable<S>& table) {
  table.add("EluPlusOneLinearAttention", [](auto& o) { return mapped_sum<S, EluPlusOne>(o); });
  table.add("TaylorLinearAttention", [](auto& o) { return mapped_sum<S, TaylorMap>(o); });
  table.add("SquaredLinearAttention", [](auto& o) { return mapped_sum<S, SymmetricPower<2>>(o); });
  table.add("PowerAttention", [](auto& o) {
    return mapped<NormalisedGatedAttention<S>, SymmetricPower<2>>(o,
                                                                  S(o.number("epsilon", 1e-6)));
  });
  table.add("DpfpDeltaRule", [](auto& o) {
    return mapped<DeltaRule<S>, SumNormalised<Dpfp<2>>>(o);
  });
  table.add("L2GatedDeltaRule", [](auto& o) {
    return mapped<GatedDeltaRule<S>, L2Normalised<IdentityMap>>(o);
  });
}

}  // namespace fw::detail
