#pragma once

#include <fastweights/feature_maps/symmetric_power.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// The second-order Taylor series of the exponential, the feature map of Based.
///
///     φ(x) = [1; x; φ_2(x) / √2]        φ_2 = `SymmetricPower<2>`
///     φ(q)·φ(k) = 1 + s + s²/2          s = q·k
///
/// The weight is at least 1/2 for any s. Queries are usually divided by √d first.
///
/// Shapes: d → 1 + d + d (d+1)/2. Cost: one product per feature forward, two backward. `features`
/// throws std::invalid_argument for a d with more features than an Index holds. In float features
/// overflow for entries above 1e19 in size. Arora et al. 2024, arXiv 2402.18668, section 4.
struct TaylorMap {
  static constexpr std::string_view name = "TaylorMap";

  template <int D>
  static constexpr int fixed_features = D == Dynamic ? Dynamic : 1 + D + D*(D + 1) / 2;
  Index features(Index d) const { return 1 + d + SymmetricPower<2>().features(d); }

  /// y ← φ(x), of one vector.
  template <class X, class Y> void map(const X& x, Y& y) const {
    detail::for_each_column(
        x.cols(), [](const auto& in, auto&& out) { map_column(in, out); }, x, y);
  }
  template <class X, class Y, class Dy, class Dx>
  void vjp(const X& x, const Y&, const Dy& dy, Dx& dx) const {
    detail::for_each_column(
        x.cols(), [](const auto& in, const auto& dout, auto&& din) { vjp_column(in, dout, din); },
        x, dy, dx);
  }

 private:
  using Squares = detail::Monomials<2>;
  template <class S> static S scale() { return S(0.70710678118654752440); }  // 1/√2

  template <class X, class Y> static void map_column(const X& x, Y& y) {
    using S = typename X::Scalar;
    y[0] = S(1);
    y.segment(1, x.size()) = x;
    auto squares = y.tail(y.size() - 1 - x.size());
    Squares::map(x, squares, scale<S>());
  }
  template <class X, class Dy, class Dx> static void vjp_column(const X& x, const Dy& dy, Dx& dx) {
    dx += dy.segment(1, x.size());
    const auto dsquares = dy.tail(dy.size() - 1 - x.size());
    Squares::vjp(x, dsquares, dx, scale<typename X::Scalar>());
  }
};

}  // namespace fw
