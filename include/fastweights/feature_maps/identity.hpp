#pragma once

#include <fastweights/feature_maps/columns.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// No feature map: the memory gets keys and queries unchanged.
///
///     φ(x) = x
///
/// Shapes: d → d. Throws nothing.
struct IdentityMap : detail::ElementwiseMap<IdentityMap> {
  static constexpr std::string_view name = "IdentityMap";

  template <class X, class Y> static void map_vector(const X& x, Y& y) { y = x; }
  template <class Y, class Dy, class Dx> static void vjp_vector(const Y&, const Dy& dy, Dx& dx) {
    dx += dy;
  }
};

}  // namespace fw
