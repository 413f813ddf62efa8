#pragma once

#include <fastweights/kernels/backward_fades.hpp>
#include <fastweights/kernels/visits.hpp>

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

/// met = x ∘ dx of both tokens, or met += factor x ∘ dx, where somebody asks for it: for every
/// column of the matrix, or the sum of them all.
template <Fade fading, bool adds, class Column, class S>
EIGEN_ALWAYS_INLINE void meet(const BackwardPair<S>& p, const Column& x1, Column dx1,
                              const Column& x2, Column dx2, Index first, Index rows,
                              [[maybe_unused]] S factor = S(1)) {
  if (p.one.met == nullptr) return;
  const auto put = [&](S* met, const Column& x) {
    if constexpr (fading == Fade::all)
      *met = (adds || first > 0 ? *met : S(0)) + factor * x.sum();
    else if constexpr (adds)
      add_to(met + first, x, factor, rows);
    else
      store_part(x, met + first, 0, rows);
  };
  dx1.scale(x1);
  dx2.scale(x2);
  put(p.one.met, dx1);
  if (!p.lonely) put(p.two.met, dx2);
}

/// What the matrix gave, as if it had faded.
template <class Fades, class Column>
EIGEN_ALWAYS_INLINE void found(const Fades& fades, Few<Column, 2>& sums) {
  fades.found(sums.first.only);
  fades.found(sums.second.only);
}
template <class Fades, class Column>
EIGEN_ALWAYS_INLINE void found(const Fades& fades, Few<Column, 4>& sums) {
  found(fades, sums.first);
  found(fades, sums.second);
}

}  // namespace FASTWEIGHTS_KERNELS
}  // namespace fw::detail
