#pragma once

#include <Eigen/Core>

/// \file
/// How a matrix W fades: W ← α W, or W ← W diag(α) where every column has a decay of its own.

namespace fw::detail {

template <class W> EIGEN_ALWAYS_INLINE void fade(W& w, const typename W::Scalar& decay) {
  w *= decay;
}
template <class W, class D> EIGEN_ALWAYS_INLINE void fade(W& w, const Eigen::MatrixBase<D>& decay) {
  w *= decay.derived().asDiagonal();
}

/// α ⊙ x, for what meets W before it fades: (W diag(α)) x = W (α ⊙ x).
template <class X>
EIGEN_ALWAYS_INLINE auto faded(const typename X::Scalar& decay, const Eigen::MatrixBase<X>& x) {
  return decay * x.derived();
}
template <class D, class X>
EIGEN_ALWAYS_INLINE auto faded(const Eigen::MatrixBase<D>& decay, const Eigen::MatrixBase<X>& x) {
  return decay.derived().cwiseProduct(x.derived());
}

/// From the gradient of what W faded to, to that of W, in place, and of α.
template <class W, class DW>
void fade_vjp(const W& w, const typename W::Scalar& decay, DW& dw, typename W::Scalar& ddecay) {
  ddecay += w.cwiseProduct(dw).sum();
  fade(dw, decay);
}
template <class W, class D, class DW, class DD>
void fade_vjp(const W& w, const Eigen::MatrixBase<D>& decay, DW& dw, DD& ddecay) {
  ddecay += w.cwiseProduct(dw).colwise().sum().transpose();
  fade(dw, decay);
}

/// How much of what token i wrote is left at token t: entry (i, t) is α_{i+1} ⋯ α_t for i ≤ t, else
/// 0. Products throughout: quotients of α_1 ⋯ α_t, as matrix forms often have them, would spoil
/// with the first decay near 0.
template <class S, class D>
Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic> causal_decays(const D& decay) {
  const Eigen::Index steps = decay.size();
  Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic> left(steps, steps);
  left.setIdentity();
  for (Eigen::Index t = 1; t < steps; ++t) left.col(t).head(t) = decay[t] * left.col(t - 1).head(t);
  return left;
}

}  // namespace fw::detail
