#pragma once

#include <fastweights/any_memory/memory_table.hpp>
#include <fastweights/feature_maps/dpfp.hpp>
#include <fastweights/feature_maps/elu_plus_one.hpp>
#include <fastweights/feature_maps/favor_plus.hpp>
#include <fastweights/feature_maps/identity.hpp>
#include <fastweights/feature_maps/normalise.hpp>
#include <fastweights/feature_maps/symmetric_power.hpp>
#include <fastweights/feature_maps/taylor.hpp>
#include <fastweights/memories/adaptors/feature_mapped.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/gated_linear_attention.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>
#include <fastweights/memories/rules/normalised_gated_attention.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

// A memory behind a feature map, with keys of key_size rows before the map. `last` are arguments of
// the memory after its sizes.
template <class M, class Options, class Map, class... Last>
auto mapped(Options& o, const Map& map, const Last&... last) {
  const Sizes<> sizes = o.sizes();
  check_size<Dynamic>(M::name, "key_size", sizes.key_size);
  return FeatureMapped<M, Map>(M({map.features(sizes.key_size), sizes.value_size}, last...),
                               sizes.key_size, map);
}
// A normalised sum behind a feature map.
template <class S, class Options, class Map> auto mapped_sum(Options& o, const Map& map) {
  using Normaliser = AttentionNormaliser<S>;
  return mapped<LinearAttention<S, Dynamic, Dynamic, Normaliser>>(
      o, map, Normaliser{S(o.number("epsilon", 1e-5))});
}

/// Memories behind a feature map.
template <class S> void add_feature_mapped(MemoryTable<S>& table) {
  table.add("EluPlusOneLinearAttention", [](auto& o) { return mapped_sum<S>(o, EluPlusOne()); });
  table.add("TaylorLinearAttention", [](auto& o) { return mapped_sum<S>(o, TaylorMap()); });
  table.add("SquaredLinearAttention",
            [](auto& o) { return mapped_sum<S>(o, SymmetricPower<2>()); });
  table.add("FavorPlusLinearAttention", [](auto& o) {
    const Index features = o.integer("features", 64);
    const auto seed = static_cast<std::uint64_t>(o.integer("seed", 1));
    return mapped_sum<S>(o, FavorPlus<S>(o.sizes().key_size, features, seed));
  });
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
