#pragma once

#include <fastweights/feature_maps/feature_map.hpp>
#include <fastweights/layers/stable_keys.hpp>
#include <fastweights/networks/builder.hpp>

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// φ of every head: see feature_map().
template <class S, FeatureMap Map> struct MapFeatures final : Operation<S> {
  Map map;      ///< φ
  Index heads;  ///< of x

  MapFeatures(Map phi, Index h) : map(std::move(phi)), heads(h) {}

  void forward(const Forward<S>& run) const override {
    const auto x = run.in();
    auto y = run.out();
    for (Index h = 0; h < heads; ++h) {
      auto features = head(y, h);
      map.map(head(x, h), features);
    }
  }
  void backward(const Backward<S>& run) const override {
    const auto x = run.in();
    const auto y = run.out();
    const auto dy = run.dout();
    auto dx = run.din();
    for (Index h = 0; h < heads; ++h) {
      auto gradient = head(dx, h);
      map.vjp(head(x, h), head(y, h), head(dy, h), gradient);
    }
  }

 private:
  template <class View> auto head(const View& view, Index h) const {
    const Index rows = view.rows() / heads;
    return view.rows_of(h * rows, rows);
  }
};

/// φ(x) of every token, by a feature map of fastweights/feature_maps/ or of your own; of every
/// head, if x is that of several stacked heads. Shapes: x heads·d×T, y heads·features×T. Cost: that
/// of the map. Throws std::invalid_argument for heads of unequal size or a size that the map cannot
/// take.
template <FeatureMap Map, class S>
Value<S> feature_map(const Value<S>& x, Map map, Index heads = 1) {
  const Index rows = heads * map.features(x.rows_of_part(heads));
  return x.builder->add(MapFeatures<S, Map>(std::move(map), heads), rows, {x});
}

/// Throws std::invalid_argument if the own condition of a memory (core/stability.hpp) does not hold
/// for keys that the feature map makes of vectors of `key_size` entries. A delta rule needs keys of
/// bounded length, which a projection alone does not give:
///
///     check_stable_keys(x, fw::DeltaRule<float>({.key_size = 64}), fw::L2Normalise(), 64);
///
/// X names the place in the network.
template <class S, class M, FeatureMap Map>
void check_stable_keys(const Value<S>& x, const M& memory, const Map& map, Index key_size) {
  fw::detail::check_stable_keys(x.builder->path(), memory, map, key_size,
                                "a feature map that bounds the length of keys, such as "
                                "fw::L2Normalise");
}

}  // namespace fw::networks
