#pragma once

#include <fastweights/core/state.hpp>
#include <fastweights/kernels/rule.hpp>
#include <fastweights/math/products.hpp>

/// \file
/// Tokens of one mini-batch of test-time training at once. All gradients are those at W_0, so for a
/// layer with inputs x_s of the keys and the gradients g_s = η_s ∇ℓ_s of its outputs, an input x_t
/// of a query meets
///
///     W_t x_t = W_0 x_t − τ_t (D x_t + Σ_{s≤t} g_s (x_s·x_t))
///
/// with D from before these tokens. These are products of matrices, where a loop over tokens passes
/// over every layer three times a token.

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// n tokens of a mini-batch: their rates τ, and buffers.
template <class S> class MiniBatch {
 public:
  using Matrix = Eigen::Map<Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic>>;
  template <class T> using Part = Eigen::Map<T, 0, Eigen::OuterStride<>>;
  using View = Part<const Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic>>;

  static constexpr Index most = 64;  // tokens at once

  /// `buffer` has n columns for each row that the model asks for, and n more.
  MiniBatch(Index n, bool begins, Columns<const S> rates, S* buffer)
      : n_(n), begins_(begins), rates_(rates), buffer_(buffer) {}

  Index size() const { return n_; }
  /// True if D is 0 before these tokens.
  bool begins() const { return begins_; }
  S rate(Index t) const { return *rates_(t); }
  /// A buffer of n columns, not initialised.
  Matrix matrix(Index rows) {
    S* const data = buffer_;
    buffer_ += rows * n_;
    return {data, rows, n_};
  }
  /// Columns of a sequence.
  static View view(const Columns<const S>& x, Index rows, Index n) {
    return {x.data, rows, n, Eigen::OuterStride<>(x.stride)};
  }
  static Part<Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic>> view(const Columns<S>& x,
                                                                     Index rows, Index n) {
    return {x.data, rows, n, Eigen::OuterStride<>(x.stride)};
  }

 private:
  Index n_;
  bool begins_;
  Columns<const S> rates_;
  S* buffer_;
};

/// Z = W X + b
template <class L, class X, class Z> void batch_affine(const L& layer, const X& x, Z& z) {
  set_product(z, layer.W, x);
  if constexpr (requires { layer.b; }) z.colwise() += layer.b;
}

/// z_t += Σ_{s≤t} g_s sums(s, t), where the other sums are 0. A gradient that is not finite reaches
/// only what comes behind it, as in steps.
template <class Z, class G, class Sums>
void add_causal_product(Z& z, const G& gradients, const Sums& sums) {
  if (gradients.allFinite()) return add_product(z, gradients, sums);
  for (Index t = 0; t < z.cols(); ++t)
    for (Index s = 0; s <= t; ++s) z.col(t) += sums(s, t) * gradients.col(s);
}

/// z_t −= τ_t (D_t x_t + d_t) for a layer whose inputs and gradients are those of the keys. `sums`
/// is n×n, and `scaled` has as many rows as x.
template <class S, class L, class X, class G, class Y, class Z>
void subtract_steps(const MiniBatch<S>& batch, const L& steps, const X& inputs, const G& gradients,
                    const Y& x, typename MiniBatch<S>::Matrix sums,
                    typename MiniBatch<S>::Matrix scaled, Z& z) {
  const Index n = batch.size();
  constexpr bool has_bias = requires { steps.b; };
  set_product(sums, inputs.transpose(), x);
  for (Index t = 0; t < n; ++t) {
    auto seen = sums.col(t).head(t + 1).array();
    if constexpr (has_bias) seen += S(1);
    seen *= -batch.rate(t);
    sums.col(t).tail(n - t - 1).setZero();
  }
  add_causal_product(z, gradients, sums);
  if (batch.begins()) return;
  for (Index t = 0; t < n; ++t) {
    scaled.col(t) = -batch.rate(t) * x.col(t);
    if constexpr (has_bias) z.col(t) -= batch.rate(t) * steps.b;
  }
  add_product(z, steps.W, scaled);
}

/// D ← D + Σ_s g_s x_sᵀ
template <class S, class L, class X, class G>
void advance_steps(const MiniBatch<S>& batch, L& steps, const X& inputs, const G& gradients) {
  if (batch.begins()) set_zero(steps);
  add_product(steps.W, gradients, inputs.transpose());
  if constexpr (requires { steps.b; }) steps.b += gradients.rowwise().sum();
}

}  // namespace fw::detail
