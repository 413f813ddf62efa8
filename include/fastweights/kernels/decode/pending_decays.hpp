#pragma once

#include <Eigen/Core>
#include <fastweights/kernels/scan/pair.hpp>

/// \file
/// Pending writes that keep the decay λ_i of each, so that the last ones can be rolled back. The
/// factor of write i is c_i = λ_{i+1} λ_{i+2} …, and that of the matrix P = λ_1 λ_2 ….

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// a_i ← c_i a_i and b_i ← c_i b_i for `count` writes with one decay each. Gives P.
template <class S> S decay_products(const S* decays, Index count, S* a, S* b) {
  S factor = S(1);
  for (Index i = count; i-- > 0; factor *= decays[i]) {
    a[i] *= factor;
    b[i] *= factor;
  }
  return factor;
}

/// a_i = k_i·(c_i ∘ k) and b_i = k_i·(c_i ∘ q), with one decay per key row. k and q become P ∘ k
/// and P ∘ q.
template <class S, class V>
void decayed_products(const Columns<S>& keys, const Columns<S>& decays, Index count, V& k, V& q,
                      S* a, S* b) {
  using Vector = Eigen::Map<const Eigen::Matrix<S, Eigen::Dynamic, 1>>;
  for (Index i = count; i-- > 0;) {
    const Vector key(keys(i), k.size()), decay(decays(i), k.size());
    a[i] = key.dot(k);
    b[i] = key.dot(q);
    k = k.cwiseProduct(decay);
    q = q.cwiseProduct(decay);
  }
}

/// k_i ← c_i k_i for the first `count` keys. A column of `decays` has one number, or one per key
/// row. P is written to `all`, which is a number at compile time or has an entry per key row.
template <class Keys, class Decays, class V>
void decay_kept_keys(Keys& keys, const Decays& decays, Index count, V& all) {
  all.setOnes();
  for (Index i = count; i-- > 0;) {
    if constexpr (V::SizeAtCompileTime == 1)
      keys.col(i) *= all[0];
    else
      keys.col(i).array() *= all.array();
    all = all.cwiseProduct(decays.col(i));
  }
}

/// Sets the columns behind the first `count` to 0.
template <class A> void clear_behind(A& columns, Index count) {
  columns.rightCols(columns.cols() - count).setZero();
}

/// Moves `count` columns from `first` on to the front, and sets those behind them to 0.
template <class A> void move_to_front(A& columns, Index first, Index count) {
  for (Index i = 0; i < count; ++i) columns.col(i) = columns.col(first + i);
  clear_behind(columns, count);
}

}  // namespace fw::detail
