#pragma once

#include <fastweights/core/scratch.hpp>
#include <fastweights/feature_maps/elu_plus_one.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// φ(x) = (ELU(x) + 1) / (Σ (ELU(x) + 1) + ε): the keys and queries of a fast net that makes them
/// itself. They are distributions up to ε, which keeps φ finite for very negative x.
struct PositiveDistribution {
  template <class X, class Y> static void map(const X& x, Y& y) {
    EluPlusOne::map_vector(x, y);
    y /= total(y);
  }
  /// Adds the gradient of x.
  template <class X, class DY, class DX> static void vjp(const X& x, const DY& dy, DX& dx) {
    using S = typename DY::Scalar;
    scratch<S, X::RowsAtCompileTime, 2>(x.size(), [&](auto& positive, auto& d) {
      EluPlusOne::map_vector(x, positive);
      const S sum = total(positive), along = dy.cwiseProduct(positive).sum() / sum;
      d.array() = (dy.array() - along) / sum;
      EluPlusOne::vjp_vector(positive, d, dx);
    });
  }

 private:
  template <class Y> static auto total(const Y& y) {
    using S = typename Y::Scalar;
    return S(y.sum() + S(1e-5));
  }
};

}  // namespace fw::detail
