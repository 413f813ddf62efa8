#pragma once

#include <algorithm>
#include <fastweights/continuous/density.hpp>
#include <fastweights/core/products.hpp>
#include <fastweights/core/scratch.hpp>

/// \file
/// One head of attention over the coefficients of a continuous signal (or over slots):
///
///     s = Kᵀq/√d,   r = E_p[ψ] for the density p that s stands for,   y = V r
///
/// Shapes: K d_k×N, V d_v×N, queries d_k×Q, outputs d_v×Q. Queries are taken up to 16 at a time, as
/// many as have their scores and weights on the stack (of which Eigen uses 128 KiB), so that
/// reading takes no heap; the backward pass works them out again. Without a single coefficient y is
/// 0.

namespace fw::detail {

template <class S> using StackMatrix = Eigen::Map<Eigen::Matrix<S, Dynamic, Dynamic>>;

// How many queries at once, each with `Rooms` columns of n numbers.
template <class S, int Buffers> constexpr Index queries_at_once(Index n) {
  constexpr Index buffer = EIGEN_STACK_ALLOCATION_LIMIT / (Buffers * Index(sizeof(S)));
  return std::clamp<Index>(buffer / n, 1, 16);
}

// Calls f(first query, how many, scores, weights, their room) block by block.
template <class S, int Buffers, class K, class Q, class F>
void by_scores(const K& keys, const Q& queries, const F& f) {
  using std::sqrt;
  const Index n = keys.cols();
  const S scale = S(1) / sqrt(S(static_cast<double>(keys.rows())));
  const Index at_once = queries_at_once<S, Buffers>(n);
  for (Index first = 0; first < queries.cols(); first += at_once) {
    const Index count = std::min(at_once, queries.cols() - first);
    scratch<S, Dynamic, Buffers>(n * count, [&](auto& s, auto&... buffers) {
      StackMatrix<S> scores(s.data(), n, count);
      scores.setZero();
      add_product(scores, keys.transpose(), queries.middleCols(first, count));
      scores *= scale;
      f(first, count, scores, StackMatrix<S>(buffers.data(), n, count)...);
    });
  }
}

/// y ← V r(q); `visit(query, scores, place)` sees where each density stands.
template <class Density, class Basis, class K, class V, class Q, class Y, class Visit>
void attend(const Density& density, const Basis& basis, const K& keys, const V& values,
            const Q& queries, Y&& outputs, const Visit& visit) {
  using S = typename K::Scalar;
  outputs.setZero();
  if (keys.cols() == 0) return;
  by_scores<S, 2>(keys, queries, [&](Index first, Index count, auto& scores, auto weights) {
    for (Index i = 0; i < count; ++i) {
      const auto place = density.locate(basis, scores.col(i));
      density.expect(basis, scores.col(i), place, weights.col(i));
      visit(first + i, scores.col(i), place);
    }
    add_product(outputs.middleCols(first, count), values, weights);
  });
}

/// From dy to dK, dV, dq and the density's parameters, all accumulated; `dplace(query, place)` is
/// the gradient that something else has for where a density stands.
template <class Density, class Basis, class K, class V, class Q, class Dy, class DPlace, class DK,
          class DV, class DQ>
void attend_vjp(const Density& density, const Basis& basis, const K& keys, const V& values,
                const Q& queries, const Dy& dy, const DPlace& dplace, DK&& dkeys, DV&& dvalues,
                DQ&& dqueries, Density& grad) {
  using std::sqrt;
  using S = typename K::Scalar;
  if (keys.cols() == 0) return;
  const S scale = S(1) / sqrt(S(static_cast<double>(keys.rows())));
  by_scores<S, 4>(
      keys, queries,
      [&](Index first, Index count, auto& scores, auto weights, auto dweights, auto dscores) {
        const auto dout = dy.middleCols(first, count);
        dweights.setZero();
        add_product(dweights, values.transpose(), dout);
        for (Index i = 0; i < count; ++i) {
          const auto place = density.locate(basis, scores.col(i));
          density.expect(basis, scores.col(i), place, weights.col(i));
          auto d = dplace(first + i, place);
          density.vjp(basis, scores.col(i), place, dweights.col(i), d, dscores.col(i), grad);
        }
        dscores *= scale;
        add_product(dvalues, dout, weights.transpose());
        add_product(dkeys, queries.middleCols(first, count), dscores.transpose());
        add_product(dqueries.middleCols(first, count), keys, dscores);
      });
}

}  // namespace fw::detail
