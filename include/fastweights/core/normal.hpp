#pragma once

#include <cmath>
#include <complex>

/// \file
/// The standard normal distribution.

namespace fw::detail {

// Φ(x) = ½ erfc(−x/√2) keeps its relative accuracy in the left tail.
template <class S> S normal_cdf(const S& x) {
  return S(0.5) * std::erfc(-x * S(0.70710678118654752440));
}

template <class S> S normal_density(const S& x) {
  using std::exp;
  return S(0.39894228040143267794) * exp(S(-0.5) * x * x);
}

// To first order in the imaginary part, which is all a complex step asks for.
template <class T> std::complex<T> normal_cdf(const std::complex<T>& z) {
  return {normal_cdf(z.real()), normal_density(z.real()) * z.imag()};
}

// Numbers of automatic differentiation.
template <class S>
requires requires(const S& x) { x.derivatives(); }
S normal_cdf(const S& x) {
  return S(normal_cdf(x.value()), normal_density(x.value()) * x.derivatives());
}

}  // namespace fw::detail
