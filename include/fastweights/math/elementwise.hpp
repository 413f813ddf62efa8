#pragma once

#include <algorithm>
#include <cmath>
#include <fastweights/core/views.hpp>
#include <fastweights/math/activations.hpp>
#include <string_view>

/// \file
/// Elementwise functions on D×T activations. A user's own function needs `value(x, y)`: y = f(x),
/// and `vjp(x, dy)`: dy ← dy ⊙ f'(x), both on D×T Eigen maps.

namespace fw::inline FASTWEIGHTS_ABI {

namespace detail {

// Calls f(x, y, scratch) on pieces of x and y, as arrays. A piece is so short that an intermediate
// result stays in the first-level cache. The scratch is on the stack.
template <class S, class F, class X, class Y> void for_each_piece(F&& f, const X& x, Y& y) {
  constexpr int length = 256;
  Eigen::Array<S, Dynamic, 1, Eigen::ColMajor, length, 1> scratch;
  for (Index t = 0; t < x.cols(); ++t)
    for (Index first = 0; first < x.rows(); first += length) {
      const Index n = std::min<Index>(length, x.rows() - first);
      scratch.resize(n);
      auto out = y.col(t).segment(first, n).array();
      f(x.col(t).segment(first, n).array(), out, scratch);
    }
}

}  // namespace detail

/// y = F(x), entry by entry, with an activation of math/activations.hpp (Tanh, Relu) or a user's
/// own. Shapes: any, x and y the same. Cost: that of F. Throws nothing.
template <class F> struct Elementwise {
  static constexpr std::string_view name = "Elementwise";

  /// y = F(x)
  template <class X, class Y> static void value(const X& x, Y& y) {
    y.array() = detail::activated(F{}, x.array());
  }

  /// dy ← dy ⊙ F'(x)
  template <class X, class Dy> static void vjp(const X& x, Dy& dy) {
    dy.array() *= detail::activated_derivative(F{}, x.array());
  }
};

/// The sigmoid-weighted linear unit (swish): y = x σ(x). Shapes: any, x and y the same. Cost: an
/// exponential per entry. Throws nothing. Elfwing, Uchibe, Doya 2017, arXiv 1702.03118, eq. 3.
struct Silu {
  static constexpr std::string_view name = "Silu";

  /// y = x σ(x)
  template <class X, class Y> static void value(const X& x, Y& y) {
    y.array() = x.array() * detail::logistic(x.array());
  }

  /// dy ← dy ⊙ σ(x) (1 + x (1 − σ(x)))
  template <class X, class Dy> static void vjp(const X& x, Dy& dy) {
    using S = typename X::Scalar;
    detail::for_each_piece<S>(
        [](const auto& in, auto& out, auto& sigmoid) {
          sigmoid = detail::logistic(in);
          out *= sigmoid * (S(1) + in * (S(1) - sigmoid));
        },
        x, dy);
  }
};

}  // namespace fw
