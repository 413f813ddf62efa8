#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <fastweights/kernels/simd/exponential.hpp>
#include <fastweights/math/activations.hpp>
#include <fastweights/math/products.hpp>
#include <fastweights/math/softmax.hpp>

/// \file
/// Causal softmax attention over a window, in matrix products of 64 queries: the key-value cache's
/// chunked scan and backward pass.

namespace fw::inline FASTWEIGHTS_ABI::detail {

using Eigen::Index;

/// scores ← exp(scores − top). First raises `top` to the largest score if that is larger or this is
/// the first block. Returns the factor that rescales sums computed with the old top.
template <class V, class S> S exponentiate(V& scores, S& top, bool first_block) {
  using std::exp;
  S largest = S(real_part(scores[0]));
  for (Index i = 1; i < scores.size(); ++i)
    if (real_part(scores[i]) > real_part(largest)) largest = S(real_part(scores[i]));
  S rescale = S(1);
  if (first_block || real_part(largest) > real_part(top)) {
    if (!first_block) rescale = exp(top - largest);
    top = largest;
  }
  scores = (scores.array() - top).exp().matrix();
  return rescale;
}

/// Keys and values in chronological order: first `held` tokens of the cache, then those of the
/// sequence. Query t attends to the last `capacity` tokens up to held + t.
template <class S, int Dk, int Dv> struct AttentionWindow {
  Eigen::Matrix<S, Dk, Eigen::Dynamic, Dk == 1 ? Eigen::RowMajor : Eigen::ColMajor> keys;
  Eigen::Matrix<S, Dv, Eigen::Dynamic, Dv == 1 ? Eigen::RowMajor : Eigen::ColMajor> values;
  Index held = 0;
  Index capacity = 0;
};

/// The attention weights of one block of queries, and their gradients.
template <class S> struct Attention {
  using Matrix = Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic>;

  static constexpr Index block = 64;
  Index first = 0;   ///< the first token of the window that the block attends to
  Index length = 0;  ///< the number of tokens that the block attends to
  Index count = 0;   ///< the number of queries in the block
  Matrix weights;    ///< length × count, columns sum to 1
  Matrix dweights;

  template <class Window, class Q>
  void compute_weights(const Window& window, const Q& queries, Index t, const S& scale) {
    count = std::min<Index>(block, queries.cols() - t);
    first = std::max<Index>(0, window.held + t + 1 - window.capacity);
    length = window.held + t + count - first;
    weights.resize(length, count);
    set_product(weights, window.keys.middleCols(first, length).transpose(),
                queries.middleCols(t, count), one_block);
    for (Index i = 0; i < count; ++i) {
      const Index end = window.held + t + i + 1 - first;
      const Index begin = std::max<Index>(0, end - window.capacity);
      auto column = weights.col(i);
      auto seen = column.segment(begin, end - begin);
      seen *= scale;
      softmax_in_place(seen);
      column.head(begin).setZero();
      column.tail(length - end).setZero();
    }
  }

  /// With P the weights: dV += dY Pᵀ, dS = P ⊙ (VᵀdY − 1 colsum(P ⊙ VᵀdY)), dK += scale Q dSᵀ,
  /// dQ += scale K dS.
  template <class Window, class Q, class Dy, class Dq>
  void vjp(const Window& window, const Q& queries, const Dy& dy, Index t, const S& scale,
           Window& dwindow, Dq& dqueries) {
    const auto dout = dy.middleCols(t, count);
    add_product(dwindow.values.middleCols(first, length), dout, weights.transpose(), one_block);
    dweights.resize(length, count);
    set_product(dweights, window.values.middleCols(first, length).transpose(), dout, one_block);
    for (Index i = 0; i < count; ++i) {
      auto dcolumn = dweights.col(i);
      softmax_vjp_in_place(weights.col(i), dcolumn);
      dcolumn *= scale;
    }
    add_product(dwindow.keys.middleCols(first, length), queries.middleCols(t, count),
                dweights.transpose(), one_block);
    add_product(dqueries.middleCols(t, count), window.keys.middleCols(first, length), dweights,
                one_block);
  }
};

}  // namespace fw::detail
