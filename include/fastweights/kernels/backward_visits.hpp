#pragma once

#include <fastweights/kernels/backward_fades.hpp>
#include <fastweights/kernels/panels.hpp>

/// \file
/// What the passes of backward.hpp have in common. PanelErrors, PanelQueries and PanelKeys say what
/// each of them does to some rows of its matrix at two tokens, run_pairs takes rows through many.
/// Transposed, a matrix that fades by the column fades by the row.

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

/// Takes a panel through pairs.
template <template <class, int, bool, Fade> class Visits, class S, int R, bool Corrects,
          Fade fading>
EIGEN_DONT_INLINE void run_pairs(const Panel<S>& panel, Index columns, const BackwardPair<S>* pairs,
                                 Index count) {
  using Of = Visits<S, R, Corrects, fading>;
  S* const W = panel.data;
  const Index first = panel.first, rows = panel.rows;
  Pending<S, R, Of::updates> pending;
  Of::ask(pairs[0].ahead, panel);
  Of::template visit<Writes::nothing>(W, columns, pairs[0], pending, first, rows);
  for (Index i = 1; i < count; ++i) {
    Of::ask(pairs[i].ahead, panel);
    if (fades<fading>(pending))
      Of::template visit<Of::fading_writes>(W, columns, pairs[i], pending, first, rows);
    else
      Of::template visit<Writes::updates>(W, columns, pairs[i], pending, first, rows);
  }
  if (fades<fading>(pending))
    MatrixPass<Of::fading_writes, S, R, Of::updates, Of::products>::write(W, columns, pending);
  else
    MatrixPass<Writes::updates, S, R, Of::updates, Of::products>::write(W, columns, pending);
}

}  // namespace FASTWEIGHTS_KERNELS
}  // namespace fw::detail
