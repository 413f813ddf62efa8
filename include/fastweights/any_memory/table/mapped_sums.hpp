#pragma once

#include <fastweights/any_memory/table/mapped.hpp>
#include <fastweights/feature_maps/elu_plus_one.hpp>
#include <fastweights/feature_maps/favor_plus.hpp>
#include <fastweights/feature_maps/symmetric_power.hpp>
#include <fastweights/feature_maps/taylor.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

// A normalised sum behind a feature map.
template <class S, class Options, class Map> auto mapped_sum(Options& o, const Map& map) {
  using Normaliser = AttentionNormaliser<S>;
  return mapped<LinearAttention<S, Dynamic, Dynamic, Normaliser>>(
      o, map, Normaliser{S(o.number("epsilon", 1e-5))});
}

/// Linear attention behind a feature map.
template <class S> void add_mapped_sums(MemoryTable<S>& table) {
  table.add("EluPlusOneLinearAttention", [](auto& o) { return mapped_sum<S>(o, EluPlusOne()); });
  table.add("TaylorLinearAttention", [](auto& o) { return mapped_sum<S>(o, TaylorMap()); });
  table.add("SquaredLinearAttention",
            [](auto& o) { return mapped_sum<S>(o, SymmetricPower<2>()); });
  table.add("FavorPlusLinearAttention", [](auto& o) {
    const Index features = o.integer("features", 64);
    const auto seed = static_cast<std::uint64_t>(o.integer("seed", 1));
    return mapped_sum<S>(o, FavorPlus<S>(o.sizes().key_size, features, seed));
  });
}

}  // namespace fw::detail
