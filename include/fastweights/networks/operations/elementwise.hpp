#pragma once

#include <fastweights/math/gelu.hpp>
#include <fastweights/networks/builder.hpp>

/// \file
/// Elementwise functions of values: silu(x), sigmoid(x), softplus(x), exp(x), tanh(x), relu(x),
/// gelu(x), gelu_tanh(x), log_sigmoid(x), square(x), root_of_complement(x), and a·x + b as `a * x +
/// b` with numbers.

namespace fw::inline FASTWEIGHTS_ABI::networks {

namespace detail {

// f(x), which vectorises; of complex numbers, whose branch is that of the real part, F of each
// entry.
template <class F, class X, class Real> auto by_entry(const X& x, const Real& f) {
  using S = typename X::Scalar;
  if constexpr (Eigen::NumTraits<S>::IsComplex)
    return x.unaryExpr([](const S& each) -> S { return F{}(each); });
  else
    return f(x);
}
struct SoftplusOf {
  template <class S> S operator()(const S& x) const { return fw::detail::softplus(x); }
};
struct LogSigmoidOf {
  template <class S> S operator()(const S& x) const { return -fw::detail::softplus(S(-x)); }
};
struct WithinTenOf {
  template <class S> S operator()(const S& x) const {
    const auto real = fw::detail::real_part(x);
    return real > 10 ? S(10) : real < -10 ? S(-10) : x;
  }
};
// x between −10 and 10, beyond which tanh of its cube is ±1.
template <class X> auto within_ten(const X& x) {
  using S = typename X::Scalar;
  return by_entry<WithinTenOf>(x, [](const auto& real) { return real.max(S(-10)).min(S(10)); });
}
struct RootOfComplementOf {
  template <class S> S operator()(const S& x) const {
    using std::exp, std::sqrt;
    return sqrt(S(1) - exp(S(2) * x));
  }
};
struct BoundedInverseOf {
  template <class S> S operator()(const S& y) const {
    return S(1) / (fw::detail::real_part(y) < 0.0005 ? S(0.0005) : y);
  }
};
struct ReluOf {
  template <class S> S operator()(const S& x) const { return fw::Relu().value(x); }
};
struct ReluSlope {
  template <class S> S operator()(const S& x) const { return fw::Relu().derivative(x); }
};

}  // namespace detail

// A function has value(x) and derivative(x, y) with y = value(x), of arrays.
/// e^x.
struct Exp {
  template <class X> static auto value(const X& x) { return x.exp(); }
  template <class X, class Y> static auto derivative(const X&, const Y& y) { return y; }
};
/// 1 / (1 + e^{−x}).
struct Sigmoid {
  template <class X> static auto value(const X& x) { return fw::detail::logistic(x); }
  template <class X, class Y> static auto derivative(const X&, const Y& y) {
    return y * (typename X::Scalar(1) - y);
  }
};
/// Log(1 + e^x).
struct Softplus {
  template <class X> static auto value(const X& x) {
    return detail::by_entry<detail::SoftplusOf>(
        x, [](const auto& real) { return fw::detail::softplus_of(real); });
  }
  template <class X, class Y> static auto derivative(const X& x, const Y&) {
    return fw::detail::logistic(x);
  }
};
/// Log(1 / (1 + e^{−x})).
struct LogSigmoid {
  template <class X> static auto value(const X& x) {
    return detail::by_entry<detail::LogSigmoidOf>(x, [](const auto& real) {
      return real.min(typename X::Scalar(0)) - (-real.abs()).exp().log1p();
    });
  }
  template <class X, class Y> static auto derivative(const X& x, const Y&) {
    return fw::detail::logistic(-x);
  }
};
/// Tanh x.
struct Tanh {
  template <class X> static auto value(const X& x) { return x.tanh(); }
  template <class X, class Y> static auto derivative(const X&, const Y& y) {
    return typename X::Scalar(1) - y.square();
  }
};
/// max(0, x).
struct Relu {
  template <class X> static auto value(const X& x) {
    return detail::by_entry<detail::ReluOf>(
        x, [](const auto& real) { return real.max(typename X::Scalar(0)); });
  }
  template <class X, class Y> static auto derivative(const X& x, const Y&) {
    using S = typename X::Scalar;
    return detail::by_entry<detail::ReluSlope>(
        x, [](const auto& real) { return (real > S(0)).template cast<S>(); });
  }
};
/// x².
struct Square {
  template <class X> static auto value(const X& x) { return x.square(); }
  template <class X, class Y> static auto derivative(const X& x, const Y&) {
    return typename X::Scalar(2) * x;
  }
};
/// √(1 − e^{2x}) for x ≤ 0: √(1 − a²) of a = e^x, with all digits near a = 1. There its derivative
/// is infinite; that of the root is bounded by 1000, as in the code of De et al. 2024, arXiv
/// 2402.19427.
struct RootOfComplement {
  template <class X> static auto value(const X& x) {
    return detail::by_entry<detail::RootOfComplementOf>(
        x, [](const auto& real) { return (-(typename X::Scalar(2) * real).expm1()).sqrt(); });
  }
  template <class X, class Y> static auto derivative(const X& x, const Y& y) {
    using S = typename X::Scalar;
    return detail::by_entry<detail::BoundedInverseOf>(
               y, [](const auto& root) { return root.max(S(0.0005)).inverse(); }) *
           -(S(2) * x).exp();
  }
};
/// The tanh form of the GELU: x/2 (1 + tanh(√(2/π) (x + 0.044715 x³))). Hendrycks, Gimpel 2016,
/// arXiv 1606.08415, section 2.
struct GeluTanh {
  template <class X> static auto value(const X& x) {
    using S = typename X::Scalar;
    return S(0.5) * x * (S(1) + tanh_of(detail::within_ten(x)));
  }
  template <class X, class Y> static auto derivative(const X& x, const Y&) {
    using S = typename X::Scalar;
    const auto z = detail::within_ten(x);
    const auto t = tanh_of(z);
    const auto slope = S(root) * (S(1) + S(3 * cube) * z.square());
    return S(0.5) * (S(1) + t + z * (S(1) - t.square()) * slope);
  }

 private:
  static constexpr double root = 0.79788456080286535588, cube = 0.044715;
  template <class Z> static auto tanh_of(const Z& z) {
    using S = typename Z::Scalar;
    return (S(root) * z * (S(1) + S(cube) * z.square())).tanh();
  }
};
/// y = f(x), entry by entry, for a function F above.
template <class S, class F> struct Apply final : Operation<S> {
  bool overwrites() const override { return true; }
  void forward(const Forward<S>& run) const override {
    const auto x = run.in();
    auto y = run.out();
    for (Index t = 0; t < x.cols(); ++t) y.col(t) = F::value(x.col(t).array()).matrix();
  }
  void backward(const Backward<S>& run) const override {
    const auto x = run.in();
    const auto y = run.out();
    const auto dy = run.dout();
    auto dx = run.din();
    for (Index t = 0; t < x.cols(); ++t) {
      const auto gradient = dy.col(t).array() * F::derivative(x.col(t).array(), y.col(t).array());
      if (run.is_first())
        dx.col(t).array() = gradient;
      else
        dx.col(t).array() += gradient;
    }
  }
};

/// An activation of the layers: Silu, Gelu.
template <class S, class F> struct Activate final : Operation<S> {
  bool overwrites() const override { return true; }
  void forward(const Forward<S>& run) const override {
    auto y = run.out();
    F::value(run.in(), y);
  }
  void backward(const Backward<S>& run) const override {
    if (run.is_first()) {
      auto dx = run.din();
      dx = run.dout();
      F::vjp(run.in(), dx);
      return;
    }
    Matrix<S> dx = run.dout();
    F::vjp(run.in(), dx);
    run.din() += dx;
  }
};

/// F of math/activations.hpp, entry by entry.
template <class F, class S> Value<S> activate(const Value<S>& x) {
  return x.builder->add(Activate<S, F>{}, x.rows(), {x});
}
/// F, entry by entry.
template <class F, class S> Value<S> apply(const Value<S>& x) {
  return x.builder->add(Apply<S, F>{}, x.rows(), {x});
}
/// e^x, entry by entry.
template <class S> Value<S> exp(const Value<S>& x) { return apply<Exp>(x); }
/// 1 / (1 + e^{−x}), entry by entry.
template <class S> Value<S> sigmoid(const Value<S>& x) { return apply<Sigmoid>(x); }
/// x σ(x), entry by entry.
template <class S> Value<S> silu(const Value<S>& x) { return activate<fw::Silu>(x); }
/// Log(1 + e^x), entry by entry.
template <class S> Value<S> softplus(const Value<S>& x) { return apply<Softplus>(x); }
/// log σ(x), entry by entry.
template <class S> Value<S> log_sigmoid(const Value<S>& x) { return apply<LogSigmoid>(x); }
/// Tanh x, entry by entry.
template <class S> Value<S> tanh(const Value<S>& x) { return apply<Tanh>(x); }
/// √(1 − e^{2x}) for x ≤ 0, entry by entry. See RootOfComplement.
template <class S> Value<S> root_of_complement(const Value<S>& x) {
  return apply<RootOfComplement>(x);
}
/// max(0, x), entry by entry.
template <class S> Value<S> relu(const Value<S>& x) { return apply<Relu>(x); }
/// x², entry by entry.
template <class S> Value<S> square(const Value<S>& x) { return apply<Square>(x); }
/// GELU in its tanh form, entry by entry. See GeluTanh.
template <class S> Value<S> gelu_tanh(const Value<S>& x) { return apply<GeluTanh>(x); }
/// GELU in its exact form, entry by entry.
template <class S> Value<S> gelu(const Value<S>& x) { return activate<fw::Gelu>(x); }

/// y = a x + b
template <class S> struct Affine final : Operation<S> {
  S a, b;  ///< the factor and the offset

  Affine(S factor, S offset) : a(factor), b(offset) {}
  bool overwrites() const override { return true; }
  void forward(const Forward<S>& run) const override {
    run.out().array() = a * run.in().array() + b;
  }
  void backward(const Backward<S>& run) const override { run.give(0, a * run.dout()); }
};
/// a x + b, entry by entry.
template <class S> Value<S> affine(double a, const Value<S>& x, double b) {
  return x.builder->add(Affine<S>(S(a), S(b)), x.rows(), {x});
}
/// a x.
template <class S> Value<S> operator*(double a, const Value<S>& x) { return affine(a, x, 0); }
/// b + x.
template <class S> Value<S> operator+(double b, const Value<S>& x) { return affine(1, x, b); }
/// b − x.
template <class S> Value<S> operator-(double b, const Value<S>& x) { return affine(-1, x, b); }
/// −x.
template <class S> Value<S> operator-(const Value<S>& x) { return affine(-1, x, 0); }

/// c tanh(x / c), which keeps x in (−c, c).
template <class S> Value<S> soft_cap(const Value<S>& x, double c) { return c * tanh((1 / c) * x); }

}  // namespace fw::networks
