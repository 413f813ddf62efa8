#pragma once

#include <fastweights/kernels/backward/decays_of_pairs.hpp>
#include <fastweights/kernels/scan/pair_loop.hpp>

/// \file
/// Functions shared by the passes of backward.hpp. PanelUpdateGradients, PanelQueries and PanelKeys
/// process some rows of their matrix for a pair of tokens. In a transposed matrix, decays of
/// columns are decays of rows.

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// gradient += factor x, for `rows` entries.
template <class Column, class S>
EIGEN_ALWAYS_INLINE void add_to(S* gradient, const Column& x, S factor, Index rows) {
  Column sum = load_part<Column>(gradient, 0, rows);
  sum.add(x, factor);
  store_part(sum, gradient, 0, rows);
}

/// decay_terms = x ∘ dx of both tokens, or with `adds` decay_terms += factor x ∘ dx: one entry per
/// column of the matrix, or the sum over columns. Does nothing if decay_terms is null.
template <DecayKind decay_kind, bool adds, class Column, class S>
EIGEN_ALWAYS_INLINE void add_decay_terms(const BackwardPair<S>& p, const Column& x1, Column dx1,
                                         const Column& x2, Column dx2, Index first, Index rows,
                                         [[maybe_unused]] S factor = S(1)) {
  if (p.one.decay_terms == nullptr) return;
  const auto put = [&](S* decay_terms, const Column& x) {
    if constexpr (decay_kind == DecayKind::scalar)
      *decay_terms = (adds || first > 0 ? *decay_terms : S(0)) + factor * x.sum();
    else if constexpr (adds)
      add_to(decay_terms + first, x, factor, rows);
    else
      store_part(x, decay_terms + first, 0, rows);
  };
  dx1.scale(x1);
  dx2.scale(x2);
  put(p.one.decay_terms, dx1);
  if (!p.single) put(p.two.decay_terms, dx2);
}

/// Applies the decay of the stored matrix to its products.
template <class Decays, class Column>
EIGEN_ALWAYS_INLINE void scale_products(const Decays& decays, Group<Column, 2>& sums) {
  decays.scale_products(sums.first.only);
  decays.scale_products(sums.second.only);
}
template <class Decays, class Column>
EIGEN_ALWAYS_INLINE void scale_products(const Decays& decays, Group<Column, 4>& sums) {
  scale_products(decays, sums.first);
  scale_products(decays, sums.second);
}

}  // namespace fw::detail
