#pragma once

#include <algorithm>
#include <fastweights/continuous/density.hpp>
#include <fastweights/core/scratch.hpp>
#include <fastweights/math/products.hpp>

/// \file
/// One head of attention over the coefficients of a continuous signal, or over slots:
///
///     s = Kᵀq/√d,   r = E_p[ψ] for the density p with scores s,   y = V r
///
/// Shapes: K d_k×N, V d_v×N, queries d_k×Q, outputs d_v×Q. Processes up to 16 queries at a time, as
/// many as fit on the stack with their scores and weights (Eigen's limit is 128 KiB), so that
/// reading does not allocate. The backward pass recomputes the scores. For N = 0, y is 0.

namespace fw::inline FASTWEIGHTS_ABI::detail {

template <class S> using StackMatrix = Eigen::Map<Eigen::Matrix<S, Dynamic, Dynamic>>;

// The number of queries per block, each with `Buffers` columns of n numbers.
template <class S, int Buffers> constexpr Index queries_per_block(Index n) {
  constexpr Index budget = EIGEN_STACK_ALLOCATION_LIMIT / (Buffers * Index(sizeof(S)));
  return std::clamp<Index>(budget / n, 1, 16);
}

// Calls f(first query, number of queries, scores, further buffers of the same size) for each block.
template <class S, int Buffers, class K, class Q, class F>
void for_score_blocks(const K& keys, const Q& queries, const F& f) {
  using std::sqrt;
  const Index n = keys.cols();
  const S scale = S(1) / sqrt(S(static_cast<double>(keys.rows())));
  const Index per_block = queries_per_block<S, Buffers>(n);
  for (Index first = 0; first < queries.cols(); first += per_block) {
    const Index count = std::min(per_block, queries.cols() - first);
    scratch<S, Dynamic, Buffers>(n * count, [&](auto& s, auto&... buffers) {
      StackMatrix<S> scores(s.data(), n, count);
      scores.setZero();
      add_product(scores, keys.transpose(), queries.middleCols(first, count));
      scores *= scale;
      f(first, count, scores, StackMatrix<S>(buffers.data(), n, count)...);
    });
  }
}

/// y ← V r(q). Calls `visit(query, scores, mixture)` with the density of each query.
template <class Density, class Basis, class K, class V, class Q, class Y, class Visit>
void attend(const Density& density, const Basis& basis, const K& keys, const V& values,
            const Q& queries, Y&& outputs, const Visit& visit) {
  using S = typename K::Scalar;
  outputs.setZero();
  if (keys.cols() == 0) return;
  for_score_blocks<S, 2>(keys, queries, [&](Index first, Index count, auto& scores, auto weights) {
    for (Index i = 0; i < count; ++i) {
      const auto mixture = density.mixture_of(basis, scores.col(i));
      density.expect(basis, scores.col(i), mixture, weights.col(i));
      visit(first + i, scores.col(i), mixture);
    }
    add_product(outputs.middleCols(first, count), values, weights);
  });
}

/// Accumulates the gradients of K, V, q and the density's parameters, given dy.
/// `dmixture(query, mixture)` is an additional gradient of the density, such as that of a
/// regulariser.
template <class Density, class Basis, class K, class V, class Q, class Dy, class DMixture, class DK,
          class DV, class DQ>
void attend_vjp(const Density& density, const Basis& basis, const K& keys, const V& values,
                const Q& queries, const Dy& dy, const DMixture& dmixture, DK&& dkeys, DV&& dvalues,
                DQ&& dqueries, Density& grad) {
  using std::sqrt;
  using S = typename K::Scalar;
  if (keys.cols() == 0) return;
  const S scale = S(1) / sqrt(S(static_cast<double>(keys.rows())));
  for_score_blocks<S, 4>(
      keys, queries,
      [&](Index first, Index count, auto& scores, auto weights, auto dweights, auto dscores) {
        const auto dout = dy.middleCols(first, count);
        dweights.setZero();
        add_product(dweights, values.transpose(), dout);
        for (Index i = 0; i < count; ++i) {
          const auto mixture = density.mixture_of(basis, scores.col(i));
          density.expect(basis, scores.col(i), mixture, weights.col(i));
          auto d = dmixture(first + i, mixture);
          density.vjp(basis, scores.col(i), mixture, dweights.col(i), d, dscores.col(i), grad);
        }
        dscores *= scale;
        add_product(dvalues, dout, weights.transpose());
        add_product(dkeys, queries.middleCols(first, count), dscores.transpose());
        add_product(dqueries.middleCols(first, count), keys, dscores);
      });
}

}  // namespace fw::detail
