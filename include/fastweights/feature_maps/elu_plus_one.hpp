#pragma once

#include <fastweights/feature_maps/columns.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// The exponential linear unit plus one, the positive feature map of the first linear transformers.
///
///     φ(x) = x + 1 for x > 0, exp(x) otherwise
///
/// Shapes: d → d. Cost: one exponential per entry forward, none backward (φ' = min(φ, 1)). Throws
/// nothing. Positive, but can underflow to 0 for very negative x.
/// Katharopoulos, Vyas, Pappas, Fleuret 2020, arXiv 2006.16236, eq. 7.
struct EluPlusOne : detail::ElementwiseMap<EluPlusOne> {
  static constexpr std::string_view name = "EluPlusOne";

  template <class X, class Y> static void map_vector(const X& x, Y& y) {
    using S = typename X::Scalar;
    if constexpr (detail::is_real<X>)  // SIMD, unlike Eigen's select
      y.array() = x.cwiseMax(S(0)).array() + x.cwiseMin(S(0)).array().exp();
    else
      y = x.unaryExpr([](const S& entry) { return value(entry); });
  }

  template <class Y, class Dy, class Dx> static void vjp_vector(const Y& y, const Dy& dy, Dx& dx) {
    using S = typename Y::Scalar;
    if constexpr (detail::is_real<Y>)
      dx += dy.cwiseProduct(y.cwiseMin(S(1)));
    else
      dx += dy.cwiseProduct(
          y.unaryExpr([](const S& entry) { return detail::real_part(entry) > 1 ? S(1) : entry; }));
  }

 private:
  template <class S> static S value(const S& x) {
    using std::exp;
    return detail::real_part(x) > 0 ? S(x + S(1)) : S(exp(x));
  }
};

}  // namespace fw
