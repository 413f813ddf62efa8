#pragma once

#include <Eigen/Core>
#include <cmath>
#include <fastweights/core/abi.hpp>
#include <type_traits>

/// \file
/// Elementwise activations: `value(x)` and `derivative(x)`, for real, complex and automatic
/// differentiation scalars. Your own activation needs only these two members. It may add
/// `values(x)` and `derivatives(x)` of an Eigen array expression, which vectorise, and
/// `derivatives(x, y)`, which is given y = values(x) too: these are used for whole matrices.

namespace fw::inline FASTWEIGHTS_ABI {

namespace detail {

// A complex-step argument takes the branch of its real part.
template <class S> auto real_part(const S& x) { return Eigen::numext::real(x); }

// ln(1 + e^x) without overflow, and for real x without loss of digits for small values.
template <class S> S softplus(const S& x) {
  using std::exp;
  using std::log;
  const bool positive = real_part(x) > 0;
  const S power = exp(positive ? S(-x) : x);
  if constexpr (std::is_floating_point_v<S>)
    return std::log1p(power) + (positive ? x : S(0));
  else
    return log(S(1) + power) + (positive ? x : S(0));
}

// The function of a real array, as an expression, which vectorises in float. In float it is 3e-39,
// and not 0, for very small x.
template <class A> auto softplus_of(const Eigen::ArrayBase<A>& x) {
  using S = typename A::Scalar;
  return x.derived().max(S(0)) + (-x.derived().abs()).exp().log1p();
}

// Arrays of real numbers, whose functions vectorise.
template <class A>
concept RealArray = std::is_floating_point_v<typename A::Scalar>;

// 1/(1 + e^{−x}). Where e^{−x} overflows, the result is 0, the correct limit.
template <class X> auto logistic(const X& x) {
  using S = typename X::Scalar;
  return ((-x).exp() + S(1)).inverse();
}

// value() and derivative() of every entry, as an expression.
template <class F, class A> auto activated(const F& f, const Eigen::ArrayBase<A>& x) {
  if constexpr (requires { f.values(x.derived()); })
    return f.values(x.derived());
  else
    return x.unaryExpr([f](const auto& each) { return f.value(each); });
}
template <class F, class A> auto activated_derivative(const F& f, const Eigen::ArrayBase<A>& x) {
  if constexpr (requires { f.derivatives(x.derived()); })
    return f.derivatives(x.derived());
  else
    return x.unaryExpr([f](const auto& each) { return f.derivative(each); });
}
template <class F, class A, class B>
auto activated_derivative(const F& f, const Eigen::ArrayBase<A>& x, const Eigen::ArrayBase<B>& y) {
  if constexpr (requires { f.derivatives(x.derived(), y.derived()); })
    return f.derivatives(x.derived(), y.derived());
  else
    return activated_derivative(f, x);
}

}  // namespace detail

/// F(x) = x.
struct Identity {
  /// The number itself.
  template <class S> S value(const S& x) const { return x; }
  /// One.
  template <class S> S derivative(const S&) const { return S(1); }
};

/// F(x) = tanh(x).
struct Tanh {
  /// tanh(x).
  template <class S> S value(const S& x) const {
    using std::tanh;
    return tanh(x);
  }
  /// 1 − tanh(x)².
  template <class S> S derivative(const S& x) const {
    const S y = value(x);
    return S(1) - y * y;
  }
  /// Tanh of every entry.
  template <class A> auto values(const A& x) const { return x.tanh(); }
  /// The derivatives of all entries.
  template <class A> auto derivatives(const A& x) const {
    return typename A::Scalar(1) - x.tanh().square();
  }
  /// The same, of y = tanh(x).
  template <class A, class B> auto derivatives(const A&, const B& y) const {
    return typename B::Scalar(1) - y.square();
  }
};

/// 1 / (1 + e^{−x}), without overflow on either side.
struct Sigmoid {
  /// 1 / (1 + e^{−x}).
  template <class S> S value(const S& x) const {
    using std::exp;
    if (detail::real_part(x) >= 0) return S(1) / (S(1) + exp(-x));
    const S e = exp(x);
    return e / (S(1) + e);
  }
  /// σ(x) (1 − σ(x)).
  template <class S> S derivative(const S& x) const {
    const S y = value(x);
    return y * (S(1) - y);
  }
  /// The function of every entry.
  template <detail::RealArray A> auto values(const A& x) const { return detail::logistic(x); }
  /// The derivatives of all entries, of y = σ(x).
  template <class A, class B> auto derivatives(const A&, const B& y) const {
    return y * (typename B::Scalar(1) - y);
  }
};

/// max(x, 0), with derivative 0 at 0. NaN stays NaN.
struct Relu {
  /// max(0, x).
  template <class S> S value(const S& x) const { return detail::real_part(x) <= 0 ? S(0) : x; }
  /// 0 for x ≤ 0, else 1.
  template <class S> S derivative(const S& x) const {
    return detail::real_part(x) <= 0 ? S(0) : S(1);
  }
  /// The function of every entry.
  template <detail::RealArray A> auto values(const A& x) const {
    return x.max(typename A::Scalar(0));
  }
  /// The derivatives of all entries.
  template <detail::RealArray A> auto derivatives(const A& x) const {
    using S = typename A::Scalar;
    return S(1) - (x <= S(0)).template cast<S>();
  }
};

/// Ln(1 + e^x), without overflow.
struct Softplus {
  /// ln(1 + e^x).
  template <class S> S value(const S& x) const { return detail::softplus(x); }
  /// σ(x).
  template <class S> S derivative(const S& x) const { return Sigmoid().value(x); }
  /// The function of every entry.
  template <detail::RealArray A> auto values(const A& x) const { return detail::softplus_of(x); }
  /// The derivatives of all entries.
  template <detail::RealArray A> auto derivatives(const A& x) const { return detail::logistic(x); }
};

/// Ln(1 / (1 + e^{−x})), without overflow.
struct LogSigmoid {
  /// ln σ(x).
  template <class S> S value(const S& x) const { return -detail::softplus(S(-x)); }
  /// σ(−x).
  template <class S> S derivative(const S& x) const { return Sigmoid().value(S(-x)); }
  /// The function of every entry.
  template <detail::RealArray A> auto values(const A& x) const {
    return x.min(typename A::Scalar(0)) - (-x.abs()).exp().log1p();
  }
  /// The derivatives of all entries.
  template <detail::RealArray A> auto derivatives(const A& x) const { return detail::logistic(-x); }
};

namespace detail {

// x σ(x)
template <class S> S silu(const S& x) { return x * Sigmoid().value(x); }
// y ← y ⊙ silu(z). Not Eigen's logistic(): in float it has no digits left for z near −9.
template <class Z, class Y> void multiply_by_silu(const Z& gate, Y& y) {
  using S = typename Y::Scalar;
  const auto z = gate.array();
  if constexpr (std::is_floating_point_v<S>)
    y.array() *= z / (S(1) + (-z).exp());
  else
    for (Eigen::Index i = 0; i < y.size(); ++i) y[i] *= silu(S(gate[i]));
}

// The gradients of y = x ⊙ silu(z): `x` becomes that of x, and that of z is added to dz.
template <class Z, class Dy, class X, class DZ>
void silu_gate_vjp(const Z& gate, const Dy& dy, X& x, DZ& dgate) {
  using S = typename X::Scalar;
  for (Eigen::Index i = 0; i < x.size(); ++i) {
    const S z = gate[i], sigmoid = Sigmoid().value(z);
    dgate[i] += dy[i] * x[i] * sigmoid * (S(1) + z * (S(1) - sigmoid));
    x[i] = dy[i] * z * sigmoid;
  }
}

}  // namespace detail

}  // namespace fw
