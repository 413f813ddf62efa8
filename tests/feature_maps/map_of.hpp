#pragma once

#include <fastweights/feature_maps/chain.hpp>
#include <fastweights/feature_maps/dpfp.hpp>
#include <fastweights/feature_maps/elu_plus_one.hpp>
#include <fastweights/feature_maps/favor_plus.hpp>
#include <fastweights/feature_maps/identity.hpp>
#include <fastweights/feature_maps/normalise.hpp>
#include <fastweights/feature_maps/relu.hpp>
#include <fastweights/feature_maps/softmax.hpp>
#include <fastweights/feature_maps/symmetric_power.hpp>
#include <fastweights/feature_maps/tanh.hpp>
#include <fastweights/feature_maps/taylor.hpp>
#include <tuple>

#include "feature_maps/any_map.hpp"

/// \file
/// All feature maps, and the classes that hide their types.

namespace feature_map_checks {

using fw::Dynamic;

using ThreeInARow = fw::Chain<fw::Dpfp<1>, fw::EluPlusOne, fw::L2Normalise>;

using Maps = std::tuple<fw::IdentityMap, fw::ReluMap, fw::EluPlusOne, fw::TanhMap, fw::Dpfp<1>,
                        fw::Dpfp<3>, fw::FavorPlus<double>, fw::SoftmaxMap, fw::SumNormalise,
                        fw::L2Normalise, fw::SumNormalised<fw::EluPlusOne>,
                        fw::SumNormalised<fw::Dpfp<2>>, fw::L2Normalised<fw::FavorPlus<double>>,
                        ThreeInARow, fw::TaylorMap, fw::SymmetricPower<2>, fw::SymmetricPower<3>>;
inline constexpr std::size_t map_count = std::tuple_size_v<Maps>;

/// Not a template: one source compiles the draw of the projection.
fw::FavorPlus<double> favor_plus(Index d, Index m, std::uint64_t seed);

template <class M> M make(Index) { return {}; }
template <> inline fw::FavorPlus<double> make(Index d) { return favor_plus(d, d + 2, 5); }
template <> inline fw::L2Normalised<fw::FavorPlus<double>> make(Index d) {
  return {make<fw::FavorPlus<double>>(d), {}};
}

/// Interface is AnyMap<S> or a class derived from it.
template <class S, class M, class Interface = AnyMap<S>> class MapOf : public Interface {
 public:
  using typename Interface::Matrix, typename Interface::Vector;
  explicit MapOf(M map) : map_(std::move(map)) {}

  Index features(Index d) const override { return map_.features(d); }
  void apply(const Matrix& x, Matrix& y) const override { fw::apply(map_, x, y); }
  void apply(const Vector& x, Vector& y) const override { fw::apply(map_, x, y); }
  void apply_vjp(const Matrix& x, const Matrix& y, const Matrix& dy, Matrix& dx) const override {
    fw::apply_vjp(map_, x, y, dy, dx);
  }
  void apply_vjp(const Vector& x, const Vector& y, const Vector& dy, Vector& dx) const override {
    fw::apply_vjp(map_, x, y, dy, dx);
  }

 protected:
  M map_;
};

template <class S, class M> std::unique_ptr<AnyMap<S>> any(M map) {
  return std::make_unique<MapOf<S, M>>(std::move(map));
}

/// Calls f.operator()<M>() for the map of a kind.
template <class F> void with_map(std::size_t kind, const F& f) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    ((I == kind ? f.template operator()<std::tuple_element_t<I, Maps>>() : void()), ...);
  }
  (std::make_index_sequence<map_count>{});
}

template <class M>
inline constexpr std::size_t kind_of = []<std::size_t... I>(std::index_sequence<I...>) {
  return ((std::is_same_v<M, std::tuple_element_t<I, Maps>> ? I : 0) + ...);
}
(std::make_index_sequence<map_count>{});

template <class S> std::unique_ptr<AnyMap<S>> make_map(std::size_t kind, Index d) {
  std::unique_ptr<AnyMap<S>> made;
  with_map(kind, [&]<class M>() { made = any<S>(fw::cast_feature_map<S>(make<M>(d))); });
  return made;
}

}  // namespace feature_map_checks
