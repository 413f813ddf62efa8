#pragma once

#include <fastweights/feature_maps/feature_map.hpp>

namespace fw {

/// Bounded features of either sign.
///
///     φ(x) = tanh(x)
///
/// Shapes: d → d. Throws nothing. Features can cancel: not for memories that divide by their sum.
/// The key and query activation of the fast weight memory in Schlag, Munkhdalai, Schmidhuber 2021,
/// arXiv 2011.07831.
struct TanhMap : detail::KeepsRows {
  static constexpr std::string_view name = "TanhMap";

  template <class X, class Y> void map(const X& x, Y& y) const { y.array() = x.array().tanh(); }
  template <class X, class Y, class Dy, class Dx>
  void vjp(const X&, const Y& y, const Dy& dy, Dx& dx) const {
    dx -= dy.cwiseProduct(y.cwiseProduct(y)) - dy;
  }
};

}  // namespace fw
