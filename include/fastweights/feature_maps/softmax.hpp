#pragma once

#include <fastweights/feature_maps/columns.hpp>
#include <fastweights/math/softmax.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// Softmax over the components of each column: positive features that sum to 1.
///
///     φ(x)_i = exp(x_i − max x) / Σ_j exp(x_j − max x)
///
/// Shapes: d → d. Cost: one exponential per entry forward, none backward. Throws nothing. Entries
/// of any finite size are fine: the largest becomes exp(0).
struct SoftmaxMap : detail::ColumnwiseMap<SoftmaxMap> {
  static constexpr std::string_view name = "SoftmaxMap";

  template <class X, class Y> static void map_column(const X& x, Y& y) {
    y = x;
    detail::softmax_in_place(y);
  }
  template <class X, class Y, class Dy, class Dx>
  static void vjp_column(const X&, const Y& y, const Dy& dy, Dx& dx) {
    const typename Y::Scalar mean = dy.cwiseProduct(y).sum();
    dx.array() += y.array() * (dy.array() - mean);
  }
};

}  // namespace fw
