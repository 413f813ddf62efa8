#pragma once

#include <fastweights/math/elementwise.hpp>
#include <fastweights/math/normal.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// The Gaussian error linear unit, exact form: y = x Φ(x), derivative Φ(x) + x φ(x).
///
/// Shapes: any, x and y the same. Cost: an exponential per entry. Throws nothing. In float both are
/// vectorised, with an error below 5e-7; in double they are as exact as std::erfc. Hendrycks,
/// Gimpel 2016, arXiv 1606.08415, section 2.
struct Gelu {
  static constexpr std::string_view name = "Gelu";

  /// y = GELU(x)
  template <class X, class Y> static void value(const X& x, Y& y) {
    using S = typename X::Scalar;
    if constexpr (std::is_same_v<S, float>)
      detail::for_each_piece<S>(
          [](const auto& in, auto& out, auto& tail) {
            detail::upper_tail(in, tail);
            // x Φ(x) = max(x, 0) − |x| (1 − Φ(|x|))
            out = in.max(0.0f) - in.abs() * tail * (-0.5f * in.square()).exp();
          },
          x, y);
    else
      y = x.unaryExpr([](const S& z) -> S { return z * detail::normal_cdf(z); });
  }

  /// dy ← dy ⊙ GELU'(x)
  template <class X, class Dy> static void vjp(const X& x, Dy& dy) {
    using S = typename X::Scalar;
    if constexpr (std::is_same_v<S, float>)
      detail::for_each_piece<S>(
          [](const auto& in, auto& out, auto& tail) {
            detail::upper_tail(in, tail);
            // Φ(x) + x φ(x) = ½ + sign(x) (½ − (1 − Φ(|x|)) + |x| φ(x)); Eigen 3.4 has no
            // vectorised sign; where the clamped value is not ±1, its factor is below 1e-9.
            tail = 0.5f - (tail - 0.39894228f * in.abs()) * (-0.5f * in.square()).exp();
            out *= 0.5f + (in * 1e9f).max(-1.0f).min(1.0f) * tail;
          },
          x, dy);
    else
      dy = dy.cwiseProduct(x.unaryExpr(
          [](const S& z) -> S { return detail::normal_cdf(z) + z * detail::normal_density(z); }));
  }
};

/// The tanh form of the GELU, an activation of math/activations.hpp: x/2 (1 + tanh(√(2/π) (x +
/// 0.044715 x³))). Hendrycks, Gimpel 2016, arXiv 1606.08415, section 2.
struct GeluTanh {
  /// The function.
  template <class S> S value(const S& x) const {
    const S t = tanh_of(within_ten(x));
    return S(0.5) * x * (S(1) + t);
  }
  /// Its derivative.
  template <class S> S derivative(const S& x) const {
    const S z = within_ten(x), t = tanh_of(z), rest = S(1) - t * t;
    const S inner = S(root) * (S(1) + S(3 * cube) * z * z);
    return S(0.5) * (S(1) + t + z * rest * inner);
  }
  /// The function of every entry.
  template <detail::RealArray A> auto values(const A& x) const {
    using S = typename A::Scalar;
    return S(0.5) * x * (S(1) + tanh_of_entries(entries_within_ten(x)));
  }
  /// The derivatives of all entries.
  template <detail::RealArray A> auto derivatives(const A& x) const {
    using S = typename A::Scalar;
    const auto z = entries_within_ten(x);
    const auto t = tanh_of_entries(z);
    const auto inner = S(root) * (S(1) + S(3 * cube) * z.square());
    return S(0.5) * (S(1) + t + z * (S(1) - t.square()) * inner);
  }

 private:
  static constexpr double root = 0.79788456080286535588, cube = 0.044715;
  // x between −10 and 10, beyond which tanh of its cube is ±1.
  template <class S> static S within_ten(const S& x) {
    const auto real = detail::real_part(x);
    return real > 10 ? S(10) : real < -10 ? S(-10) : x;
  }
  template <class A> static auto entries_within_ten(const A& x) {
    using S = typename A::Scalar;
    return x.max(S(-10)).min(S(10));
  }
  template <class S> static S tanh_of(const S& z) {
    using std::tanh;
    const S inner = S(root) * z * (S(1) + S(cube) * z * z);
    return tanh(inner);
  }
  template <class A> static auto tanh_of_entries(const A& z) {
    using S = typename A::Scalar;
    return (S(root) * z * (S(1) + S(cube) * z.square())).tanh();
  }
};

}  // namespace fw
