#pragma once

#include <cmath>
#include <fastweights/math/activations.hpp>

/// \file
/// A vector with mean 0 and variance 1, up to ε: a layer norm without its weights.
///
///     x̂ = s (x − mean(x))        s = 1 / √(var(x) + ε)

namespace fw::inline FASTWEIGHTS_ABI::detail {

template <class X> auto mean_of(const X& x) {
  using S = typename X::Scalar;
  return S(x.sum() / S(static_cast<double>(x.size())));
}

/// Replaces x by x̂. Returns s.
template <class X, class S = typename X::Scalar> S standardise(X& x, const S& epsilon) {
  const S mean = mean_of(x);
  x.array() -= mean;
  using std::sqrt;
  const S s = S(1) / S(sqrt(S(mean_of(x.cwiseProduct(x)) + epsilon)));
  x *= s;
  return s;
}
/// Turns the gradient of x̂ into that of x.
template <class X, class S, class D> void standardise_vjp(const X& x, const S& s, D& d) {
  const S mean = mean_of(d), along = mean_of(d.cwiseProduct(x));
  d.array() = s * (d.array() - mean - along * x.array());
}

}  // namespace fw::detail
