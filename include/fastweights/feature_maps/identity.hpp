#pragma once

#include <fastweights/feature_maps/feature_map.hpp>

namespace fw {

/// No feature map: keys and queries meet the memory as they are.
///
///     φ(x) = x
///
/// Shapes: d → d. Throws nothing.
struct IdentityMap : detail::KeepsRows {
  static constexpr std::string_view name = "IdentityMap";

  template <class X, class Y> void map(const X& x, Y& y) const { y = x; }
  template <class X, class Y, class Dy, class Dx>
  void vjp(const X&, const Y&, const Dy& dy, Dx& dx) const {
    dx += dy;
  }
};

}  // namespace fw
