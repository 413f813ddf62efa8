#pragma once

#include <algorithm>
#include <array>
#include <fastweights/core/scratch.hpp>
#include <fastweights/feature_maps/columns.hpp>
#include <fastweights/feature_maps/normalise.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

template <class First, class Second, class... More> struct Chain;

namespace detail {

template <class Second, class... More> struct ChainTail { using type = Chain<Second, More...>; };
template <class Last> struct ChainTail<Last> { using type = Last; };

template <class First, class Tail>
inline constexpr auto chain_name = [] {
  constexpr std::string_view then = " then ";
  std::array<char, First::name.size() + then.size() + Tail::name.size()> text{};
  auto end = std::copy(First::name.begin(), First::name.end(), text.begin());
  end = std::copy(then.begin(), then.end(), end);
  std::copy(Tail::name.begin(), Tail::name.end(), end);
  return text;
}();

}  // namespace detail

/// The composition of feature maps, applied first to last, as one feature map.
///
///     Chain<Dpfp<2>, SumNormalise>:  φ(x) = SumNormalise(Dpfp<2>(x))
///
/// Shapes: those of the maps in turn. The features between two maps stay on the stack, for one tile
/// of columns at a time, and the backward pass computes them again. Throws what the maps throw.
template <class First, class Second, class... More> struct Chain {
  using Tail = typename detail::ChainTail<Second, More...>::type;  ///< the chain of the later maps
  static constexpr std::string_view name{detail::chain_name<First, Tail>.data(),
                                         detail::chain_name<First, Tail>.size()};

  First first;  ///< the map that is applied first
  Tail rest;    ///< what is applied to its features

  /// Maps with their default options.
  Chain() = default;
  /// The maps in the order in which they are applied.
  Chain(First first_map, Second second, More... more)
      : first(std::move(first_map)), rest(std::move(second), std::move(more)...) {}

  template <class T> auto cast() const {
    auto first_map = cast_feature_map<T>(first);
    auto tail = cast_feature_map<T>(rest);
    return Chain<decltype(first_map), decltype(tail)>(std::move(first_map), std::move(tail));
  }

  template <int D>
  static constexpr int fixed_features =
      Tail::template fixed_features<First::template fixed_features<D>>;
  Index features(Index d) const { return rest.features(first.features(d)); }

  /// y ← φ(x), of one vector.
  template <class X, class Y> void map(const X& x, Y& y) const {
    detail::with_views([&](const auto& in, auto& out) { map_tiles(in, out); }, x, y);
  }

  template <class X, class Y, class Dy, class Dx>
  void vjp(const X& x, const Y& y, const Dy& dy, Dx& dx) const {
    detail::with_views([&](const auto& in, const auto& out, const auto& dout,
                           auto& din) { vjp_tiles(in, out, dout, din); },
                       x, y, dy, dx);
  }

 private:
  template <class X, class Y> void map_tiles(const X& x, Y& y) const {
    for_each_tile<1>(x, [&](Index t, Index count, auto first_features) {
      auto out = columns(y, t, count);
      first.map(columns(x, t, count), first_features);
      rest.map(first_features, out);
    });
  }
  template <class X, class Y, class Dy, class Dx>
  void vjp_tiles(const X& x, const Y& y, const Dy& dy, Dx& dx) const {
    for_each_tile<2>(x, [&](Index t, Index count, auto first_features, auto dfirst_features) {
      const auto in = columns(x, t, count);
      auto din = columns(dx, t, count);
      first.map(in, first_features);
      dfirst_features.setZero();
      rest.vjp(first_features, columns(y, t, count), columns(dy, t, count), dfirst_features);
      first.vjp(in, first_features, dfirst_features, din);
    });
  }

  // Small enough for the stack and the cache, wide enough for a matrix product over several
  // columns.
  static constexpr Index tile_entries = 4096;

  // Calls f(t, count, first_features...) for each tile of `count` columns from column t on, with
  // Count matrices for the features between `first` and `rest`.
  template <int Count, class X, class F> void for_each_tile(const X& x, const F& f) const {
    constexpr int cols = X::ColsAtCompileTime == 1 ? 1 : Dynamic;
    constexpr int rows = First::template fixed_features<X::RowsAtCompileTime>;
    using S = typename X::Scalar;
    using Features = Eigen::Map<detail::PlainArray<S, rows, cols>>;
    const Index features = first.features(x.rows());
    const Index width = std::min(x.cols(), std::max<Index>(1, tile_entries / features));
    scratch<S, cols == 1 ? rows : Dynamic, Count>(features * width, [&](auto&... buffers) {
      for (Index t = 0; t < x.cols(); t += width) {
        const Index count = std::min(width, x.cols() - t);
        f(t, count, Features(buffers.data(), features, count)...);
      }
    });
  }

  template <class X>
  static auto columns(X& x, [[maybe_unused]] Index t, [[maybe_unused]] Index count) {
    if constexpr (detail::has_contiguous_columns<X>)
      return detail::view_columns(x, t, count);
    else if constexpr (X::ColsAtCompileTime == 1)
      return x.col(0);
    else
      return x.middleCols(t, count);
  }
};

/// φ, then divided by the sum of its features.
template <class Phi> using SumNormalised = Chain<Phi, SumNormalise>;

/// φ, then divided by its Euclidean length.
template <class Phi> using L2Normalised = Chain<Phi, L2Normalise>;

}  // namespace fw
