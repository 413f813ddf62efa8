#pragma once

#include <fastweights/core/softmax.hpp>
#include <fastweights/feature_maps/feature_map.hpp>

namespace fw {

/// Softmax over the components of each column: positive features that sum to 1.
///
///     φ(x)_i = exp(x_i − max x) / Σ_j exp(x_j − max x)
///
/// Shapes: d → d. Cost: one exponential an entry forwards, none backwards. Throws nothing. Entries
/// of any finite size are fine: the largest becomes exp(0). In place too: y may be x, and vjp does
/// not look at x.
struct SoftmaxMap : detail::KeepsRows {
  static constexpr std::string_view name = "SoftmaxMap";

  template <class X, class Y> void map(const X& x, Y& y) const {
    for (Index t = 0; t < x.cols(); ++t) {
      y.col(t) = x.col(t);
      detail::softmax_in_place(y.col(t));
    }
  }
  template <class X, class Y, class Dy, class Dx>
  void vjp(const X&, const Y& y, const Dy& dy, Dx& dx) const {
    using S = typename X::Scalar;
    for (Index t = 0; t < y.cols(); ++t) {
      const S mean = dy.col(t).cwiseProduct(y.col(t)).sum();
      dx.col(t).array() += y.col(t).array() * (dy.col(t).array() - mean);
    }
  }
};

}  // namespace fw
