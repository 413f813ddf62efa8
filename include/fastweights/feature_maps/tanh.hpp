#pragma once

#include <fastweights/feature_maps/columns.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// Bounded features of either sign.
///
///     φ(x) = tanh(x)
///
/// Shapes: d → d. Throws nothing. Features can cancel: not for memories that divide by their sum.
/// The key and query activation of the fast weight memory in Schlag, Munkhdalai, Schmidhuber 2021,
/// arXiv 2011.07831.
struct TanhMap : detail::ElementwiseMap<TanhMap> {
  static constexpr std::string_view name = "TanhMap";

  template <class X, class Y> static void map_vector(const X& x, Y& y) {
    y.array() = x.array().tanh();
  }
  template <class Y, class Dy, class Dx> static void vjp_vector(const Y& y, const Dy& dy, Dx& dx) {
    dx -= dy.cwiseProduct(y.cwiseProduct(y)) - dy;
  }
};

}  // namespace fw
