#pragma once

#include <fastweights/math/activations.hpp>
#include <type_traits>

/// \file
/// The softmax of one vector, for feature maps, densities and attention.

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// x ← softmax(x), for a vector or a view of one. Subtracts the largest entry first, so that no
/// exponential overflows; for complex numbers it subtracts the largest real part.
template <class V> void softmax_in_place(V&& x) {
  using S = typename std::remove_cvref_t<V>::Scalar;
  S top = x[0];
  if constexpr (std::is_floating_point_v<S>) {
    top = x.maxCoeff();
  } else {
    for (Eigen::Index i = 1; i < x.size(); ++i)
      if (real_part(x[i]) > real_part(top)) top = x[i];
  }
  x.array() = (x.array() - S(real_part(top))).exp();
  x /= S(x.sum());
}

/// p ⊙ (dp − p·dp): the gradient of x, given that of p = softmax(x). An expression.
template <class P, class V> auto softmax_vjp(const P& p, const V& dp) {
  using S = typename V::Scalar;
  const S mean = (p.array() * dp.array()).sum();
  return p.array() * (dp.array() - mean);
}
/// dp ← p ⊙ (dp − p·dp)
template <class P, class V> void softmax_vjp_in_place(const P& p, V&& dp) {
  dp.array() = softmax_vjp(p, dp);
}

}  // namespace fw::detail
