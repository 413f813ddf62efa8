#pragma once

#include <Eigen/Core>
#include <fastweights/core/abi.hpp>

/// \file
/// Decay of a matrix W: W ← α W, or W ← W diag(α) with one decay per column. Vectors scaled by one
/// number or one per entry.

namespace fw::inline FASTWEIGHTS_ABI::detail {

template <class W> EIGEN_ALWAYS_INLINE void apply_decay(W& w, const typename W::Scalar& decay) {
  w *= decay;
}
template <class W, class D>
EIGEN_ALWAYS_INLINE void apply_decay(W& w, const Eigen::MatrixBase<D>& decay) {
  w *= decay.derived().asDiagonal();
}

/// W ← α W + u xᵀ, in one pass over W.
template <class W, class U, class X>
void decay_and_add(W& w, const typename W::Scalar& decay, const U& u, const X& x) {
  w = decay * w + u.lazyProduct(x.transpose());
}

/// α ⊙ x. Multiplying x instead of W gives the same product: (W diag(α)) x = W (α ⊙ x).
template <class X>
EIGEN_ALWAYS_INLINE auto decayed(const typename X::Scalar& decay, const Eigen::MatrixBase<X>& x) {
  return decay * x.derived();
}
template <class D, class X>
EIGEN_ALWAYS_INLINE auto decayed(const Eigen::MatrixBase<D>& decay, const Eigen::MatrixBase<X>& x) {
  return decay.derived().cwiseProduct(x.derived());
}

/// Σ x_i y_i, without the conjugation of dot().
template <class X, class Y> auto product_sum(const X& x, const Y& y) {
  return x.cwiseProduct(y).sum();
}

/// Adds the gradient of β, with u = β ∘ e: one number or one per row.
template <class E, class DU, class S> void add_scale_vjp(const E& e, const DU& du, S& dbeta) {
  if constexpr (requires { dbeta.data(); })
    dbeta += e.cwiseProduct(du);
  else
    dbeta += product_sum(e, du);
}

/// `dw` is the gradient of the decayed W on entry and that of W on return. Adds the gradient of α
/// to `ddecay`.
template <class W, class DW>
void apply_decay_vjp(const W& w, const typename W::Scalar& decay, DW& dw,
                     typename W::Scalar& ddecay) {
  ddecay += w.cwiseProduct(dw).sum();
  apply_decay(dw, decay);
}
template <class W, class D, class DW, class DD>
void apply_decay_vjp(const W& w, const Eigen::MatrixBase<D>& decay, DW& dw, DD& ddecay) {
  ddecay += w.cwiseProduct(dw).colwise().sum().transpose();
  apply_decay(dw, decay);
}

/// The decay of token i's write up to token t: entry (i, t) is α_{i+1} ⋯ α_t for i ≤ t, else 0.
/// Matrix forms often use quotients of α_1 ⋯ α_t instead, which lose all accuracy after one decay
/// near 0.
template <class S, class D>
Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic> causal_decays(const D& decay) {
  const Eigen::Index steps = decay.size();
  Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic> decays(steps, steps);
  decays.setIdentity();
  for (Eigen::Index t = 1; t < steps; ++t)
    decays.col(t).head(t) = decay[t] * decays.col(t - 1).head(t);
  return decays;
}

}  // namespace fw::detail
