#pragma once

#include <cmath>
#include <complex>
#include <fastweights/core/abi.hpp>
#include <type_traits>

/// \file
/// The standard normal distribution.

namespace fw::inline FASTWEIGHTS_ABI::detail {

// Φ(x) = ½ erfc(−x/√2) keeps its relative accuracy in the left tail.
template <class S> S normal_cdf(const S& x) {
  return S(0.5) * std::erfc(-x * S(0.70710678118654752440));
}

template <class S> S normal_density(const S& x) {
  using std::exp;
  return S(0.39894228040143267794) * exp(S(-0.5) * x * x);
}

// To first order in the imaginary part, which suffices for a complex step.
template <class T> std::complex<T> normal_cdf(const std::complex<T>& z) {
  return {normal_cdf(z.real()), normal_density(z.real()) * z.imag()};
}

// Automatic differentiation scalars.
template <class S>
requires requires(const S& x) { x.derivatives(); }
S normal_cdf(const S& x) {
  return S(normal_cdf(x.value()), normal_density(x.value()) * x.derivatives());
}

// ½ erfc(|x|/√2) without its factor e^{−x²/2}, by Abramowitz & Stegun 7.1.26. The absolute error is
// at most 1.5e-7, and Eigen vectorises all operations.
template <class X, class Tail> void upper_tail(const X& x, Tail& tail) {
  tail = (1.0f + 0.23164189f * x.abs()).inverse();  // p/√2 with p = 0.3275911
  tail = tail * (0.127414796f +
                 tail * (-0.142248368f +
                         tail * (0.7107068705f + tail * (-0.7265760135f + tail * 0.5307027145f))));
}

// z ← Φ(z) for every entry. In float it is vectorised with an error of at most 2e-7, and needs a
// `buffer` of the size of z.
template <class Z, class Buffer> void normal_cdf_in_place(Z& z, [[maybe_unused]] Buffer& buffer) {
  using S = typename Z::Scalar;
  if constexpr (std::is_same_v<S, float>) {
    auto x = z.array();
    auto tail = buffer.array();
    upper_tail(x, tail);
    // ½ + sign(z) (½ − (1 − Φ(|z|))); Eigen 3.4 has no vectorised sign.
    tail = 0.5f - tail * (-0.5f * x.square()).exp();
    x = 0.5f + (x * 1e9f).max(-1.0f).min(1.0f) * tail;
  } else {
    z = z.unaryExpr([](const S& each) { return normal_cdf(each); });
  }
}

}  // namespace fw::detail
