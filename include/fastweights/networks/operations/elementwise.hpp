#pragma once

#include <cmath>
#include <fastweights/math/gelu.hpp>
#include <fastweights/networks/builder.hpp>

/// \file
/// Elementwise functions of values: silu(x), sigmoid(x), softplus(x), exp(x), tanh(x), relu(x),
/// gelu(x), gelu_tanh(x), log_sigmoid(x), square(x), root_of_complement(x), and a·x + b as `a * x +
/// b` with numbers.

namespace fw::inline FASTWEIGHTS_ABI::networks {

using fw::GeluTanh, fw::LogSigmoid, fw::Relu, fw::Sigmoid, fw::Softplus, fw::Tanh;

// Functions with the members of math/activations.hpp that are no activations.
/// e^x.
struct Exp {
  template <class S> S value(const S& x) const { return std::exp(x); }
  template <class S> S derivative(const S& x) const { return value(x); }
  template <class A> auto values(const A& x) const { return x.exp(); }
  template <class A, class B> auto derivatives(const A&, const B& y) const { return y; }
};
/// x².
struct Square {
  template <class S> S value(const S& x) const { return x * x; }
  template <class S> S derivative(const S& x) const { return S(2) * x; }
  template <class A> auto values(const A& x) const { return x.square(); }
  template <class A> auto derivatives(const A& x) const { return typename A::Scalar(2) * x; }
};
/// √(1 − e^{2x}) for x ≤ 0: √(1 − a²) of a = e^x, with all digits near a = 1. There its derivative
/// is infinite; that of the root is bounded by 1000, as in the code of De et al. 2024, arXiv
/// 2402.19427.
struct RootOfComplement {
  template <class S> S value(const S& x) const {
    if constexpr (std::is_floating_point_v<S>)
      return std::sqrt(-std::expm1(S(2) * x));
    else
      return std::sqrt(S(1) - std::exp(S(2) * x));
  }
  template <class S> S derivative(const S& x) const {
    const S y = value(x);
    return -std::exp(S(2) * x) / (fw::detail::real_part(y) < least ? S(least) : y);
  }
  template <fw::detail::RealArray A> auto values(const A& x) const {
    return (-(typename A::Scalar(2) * x).expm1()).sqrt();
  }
  template <fw::detail::RealArray A, class B> auto derivatives(const A& x, const B& y) const {
    using S = typename A::Scalar;
    return y.max(S(least)).inverse() * -(S(2) * x).exp();
  }

 private:
  static constexpr double least = 0.0005;
};
/// y = F(x), entry by entry, with an activation of math/activations.hpp or a function above.
template <class S, class F> struct Apply final : Operation<S> {
  bool overwrites() const override { return true; }
  void forward(const Forward<S>& run) const override {
    const auto x = run.in();
    auto y = run.out();
    for (Index t = 0; t < x.cols(); ++t)
      y.col(t).array() = fw::detail::activated(F{}, x.col(t).array());
  }
  void backward(const Backward<S>& run) const override {
    const auto x = run.in();
    const auto y = run.out();
    const auto dy = run.dout();
    auto dx = run.din();
    for (Index t = 0; t < x.cols(); ++t) {
      const auto gradient = dy.col(t).array() * fw::detail::activated_derivative(
                                                    F{}, x.col(t).array(), y.col(t).array());
      if (run.is_first())
        dx.col(t).array() = gradient;
      else
        dx.col(t).array() += gradient;
    }
  }
};

/// y = F(x) with a function of math/elementwise.hpp: Silu, Gelu.
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

/// F of math/elementwise.hpp, entry by entry.
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
