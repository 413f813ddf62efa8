#pragma once

#include <cmath>
#include <fastweights/core/errors.hpp>
#include <fastweights/feature_maps/columns.hpp>
#include <limits>

namespace fw::inline FASTWEIGHTS_ABI {

namespace detail {

/// The monomials of degree P of a vector x, in lexicographic order: for i_1 ≤ … ≤ i_P,
///
///     √(P! / (c_1! c_2! …)) x_{i_1} ⋯ x_{i_P}
///
/// where c_j is how often index j occurs: the root of the number of different orders.
template <int P> struct Monomials {
  /// The number of monomials, or −1 if it exceeds an Index: d (d+1) ⋯ (d+P−1) / P!.
  static constexpr Index count(Index d) {
    Index all = 1;
    for (Index n = 1; n <= P; ++n) {
      const Index factor = d + n - 1;
      if (factor > std::numeric_limits<Index>::max() / all) return -1;
      all = all * factor / n;
    }
    return all;
  }

  /// Writes all monomials times `scale` to y.
  template <class X, class Y, class S> static void map(const X& x, Y& y, const S& scale) {
    Index at = 0;
    map<1>(x, y, at, Product<S>{scale, 1, 0, 0});
  }
  /// Adds the gradient of x.
  template <class X, class Dy, class Dx, class S>
  static void vjp(const X& x, const Dy& dy, Dx& dx, const S& scale) {
    Index at = 0;
    vjp<1>(x, dy, dx, at, Product<S>{scale, 1, 0, 0});
  }

 private:
  // The first factors of a monomial, and the number of their orders. The next index is at least
  // `last`, which occurs `times` times at their end.
  template <class S> struct Product {
    S value;
    Index orders, last, times;
  };
  // The N-th factor is entry i: x, whose index occurs once, or one time more than before.
  template <int N, class S> static Product<S> next(const Product<S>& product, Index i, const S& x) {
    const Index times = i == product.last ? product.times + 1 : 1;
    return {S(product.value * x), product.orders * N / times, i, times};
  }
  // The roots of the orders of the monomials with a last factor: of entry `last`, and of others.
  template <class S> struct Roots { S same, other; };
  template <class S> static Roots<S> roots(const Product<S>& product) {
    const auto orders = static_cast<double>(product.orders * P);
    return {S(std::sqrt(orders / static_cast<double>(product.times + 1))), S(std::sqrt(orders))};
  }

  // The monomials that start with `product`, to y from entry `at` on.
  template <int N, class X, class Y, class S>
  static void map(const X& x, Y& y, Index& at, const Product<S>& product) {
    const Index first = product.last, count = x.size() - first;
    if constexpr (N == P) {
      const Roots<S> root = roots(product);
      y[at] = product.value * root.same * x[first];
      y.segment(at + 1, count - 1) = (product.value * root.other) * x.tail(count - 1);
      at += count;
    } else {
      for (Index i = first; i < x.size(); ++i) map<N + 1>(x, y, at, next<N>(product, i, S(x[i])));
    }
  }
  // Adds their gradient to dx. Returns that of product.value.
  template <int N, class X, class Dy, class Dx, class S>
  static S vjp(const X& x, const Dy& dy, Dx& dx, Index& at, const Product<S>& product) {
    const Index first = product.last, count = x.size() - first;
    S dproduct(0);
    if constexpr (N == P) {
      const Roots<S> root = roots(product);
      const auto others = dy.segment(at + 1, count - 1);
      dx[first] += product.value * root.same * dy[at];
      dx.tail(count - 1) += (product.value * root.other) * others;
      dproduct = root.same * x[first] * dy[at] +
                 root.other * S(x.tail(count - 1).cwiseProduct(others).sum());
      at += count;
    } else {
      for (Index i = first; i < x.size(); ++i) {
        const S d = vjp<N + 1>(x, dy, dx, at, next<N>(product, i, S(x[i])));
        dx[i] += product.value * d;
        dproduct += x[i] * d;
      }
    }
    return dproduct;
  }
};

}  // namespace detail

/// The symmetric power of degree P: products of features are powers of products of inputs.
///
///     φ(x) = all monomials x_{i_1} ⋯ x_{i_P} with i_1 ≤ … ≤ i_P, each times the root of the number
///            of its different orders
///     φ(q)·φ(k) = (q·k)^P
///
/// For even P this is a positive weight of attention: P = 2 is that of ReBased without its layer
/// norm, P = 4 that of power attention. P = 1 is the identity.
///
/// Features have both signs, so φ(q)·φ(k) has a rounding error of about ε (‖q‖‖k‖)^P: a weight of a
/// query nearly orthogonal to its keys loses digits, and the more the larger P is.
///
/// Shapes: d → d (d+1) ⋯ (d+P−1) / P!. Cost: one product per feature forward, two backward.
/// `features` throws std::invalid_argument for a d with more features than an Index holds. In float
/// features overflow for entries above 10^(38/P) in size. Aksenov et al. 2024, arXiv 2402.10644;
/// arXiv 2507.04239.
template <int P = 2> struct SymmetricPower {
  static_assert(P >= 1, "SymmetricPower: the degree must be at least 1");
  static constexpr std::string_view name = "SymmetricPower";
  static constexpr int degree = P;  ///< p

  template <int D>
  static constexpr int fixed_features = D == Dynamic
                                            ? Dynamic
                                            : static_cast<int>(detail::Monomials<P>::count(D));
  Index features(Index d) const {
    const Index count = detail::Monomials<P>::count(d);
    if (count < 0)
      detail::throw_invalid({"SymmetricPower: x has ", std::to_string(d),
                             " rows, which is too many for degree ", std::to_string(P)});
    return count;
  }

  /// y ← φ(x), of one vector.
  template <class X, class Y> void map(const X& x, Y& y) const {
    using S = typename X::Scalar;
    detail::for_each_column(
        x.cols(), [](const auto& in, auto&& out) { detail::Monomials<P>::map(in, out, S(1)); }, x,
        y);
  }
  template <class X, class Y, class Dy, class Dx>
  void vjp(const X& x, const Y&, const Dy& dy, Dx& dx) const {
    using S = typename X::Scalar;
    detail::for_each_column(
        x.cols(),
        [](const auto& in, const auto& dout, auto&& din) {
          detail::Monomials<P>::vjp(in, dout, din, S(1));
        },
        x, dy, dx);
  }
};

}  // namespace fw
