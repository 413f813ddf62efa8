#pragma once

#include <fastweights/kernels/backward/decays_of_pairs.hpp>
#include <fastweights/kernels/scan/pair_loop.hpp>

/// \file
/// What the passes of backward.hpp have in common. PanelErrors, PanelQueries and PanelKeys say what
/// each of them does to some rows of its matrix at a pair of tokens. Transposed, a matrix that
/// fades by the column fades by the row.

namespace fw::detail {
inline namespace FASTWEIGHTS_KERNELS {

/// gradient += factor x, of `rows` entries.
template <class Column, class S>
EIGEN_ALWAYS_INLINE void add_to(S* gradient, const Column& x, S factor, Index rows) {
  Column sum = load_part<Column>(gradient, 0, rows);
  sum.add(x, factor);
  store_part(sum, gradient, 0, rows);
}

/// decay_terms = x ∘ dx of both tokens, or decay_terms += factor x ∘ dx, where somebody asks for
/// it: for every column of the matrix, or the sum of them all.
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
  if (!p.lonely) put(p.two.decay_terms, dx2);
}

/// What the matrix gave, as if it had faded.
template <class Fades, class Column>
EIGEN_ALWAYS_INLINE void found(const Fades& fades, Group<Column, 2>& sums) {
  fades.found(sums.first.only);
  fades.found(sums.second.only);
}
template <class Fades, class Column>
EIGEN_ALWAYS_INLINE void found(const Fades& fades, Group<Column, 4>& sums) {
  found(fades, sums.first);
  found(fades, sums.second);
}

}  // namespace FASTWEIGHTS_KERNELS
}  // namespace fw::detail
