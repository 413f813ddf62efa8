#pragma once

#include <fastweights/feature_maps/columns.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

namespace detail {

// max(x, 0) as an Eigen expression; NaN stays NaN.
template <class X> auto rectified(const X& x) {
  using S = typename X::Scalar;
  if constexpr (is_real<X>)
    return x.cwiseMax(S(0));
  else
    return x.unaryExpr([](const S& entry) { return Relu{}.value(entry); });
}

// 0 where y ≤ 0, else dy: the gradient through y = max(x, 0). Compilers vectorise the selection
// because both arguments are always loaded.
template <class Y, class Dy> auto rectified_vjp(const Y& y, const Dy& dy) {
  using S = typename Y::Scalar;
  return y.binaryExpr(dy, [](const S& entry, const S& gradient) {
    return real_part(entry) <= 0 ? S(0) : gradient;
  });
}

}  // namespace detail

/// Rectified features: non-negative, and zero for every entry that is not positive.
///
///     φ(x) = max(x, 0), with derivative 0 at 0
///
/// Shapes: d → d. Throws nothing. A column without a positive entry is mapped to zero: code
/// that divides by a sum of features must expect a zero.
struct ReluMap : detail::ElementwiseMap<ReluMap> {
  static constexpr std::string_view name = "ReluMap";

  template <class X, class Y> static void map_vector(const X& x, Y& y) { y = detail::rectified(x); }
  template <class Y, class Dy, class Dx> static void vjp_vector(const Y& y, const Dy& dy, Dx& dx) {
    dx += detail::rectified_vjp(y, dy);
  }
};

}  // namespace fw
