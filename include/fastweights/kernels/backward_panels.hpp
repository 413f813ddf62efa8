#pragma once

#include <fastweights/kernels/backward_fades.hpp>
#include <fastweights/kernels/panels.hpp>
#include <fastweights/kernels/pass.hpp>

/// \file
/// What the three passes of backward.hpp do to some rows of a matrix at two tokens. Transposed, a
/// matrix that fades by the column fades by the row.

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

/// G through a pair, the later token first: c_t = G_t k_t.
template <class S, int R, bool Corrects, Fade fading> class PanelErrors {
 public:
  using Column = Rows<S, R>;
  static constexpr int updates = Corrects ? 4 : 2, products = 2;
  static constexpr auto fading_writes = writes_of(fading, Writes::fade_columns);

  static EIGEN_ALWAYS_INLINE void ask(const AheadOf<S>& ahead, const Panel<S>& panel) {
    ahead.rows.ask(panel.first, panel.rows);
  }

  template <Writes writes>
  static EIGEN_ALWAYS_INLINE void visit(S* G, Index columns, const BackwardPair<S>& p,
                                        Pending<S, R, updates>& pending, Index first, Index rows) {
    const auto &one = p.one, &two = p.two;
    Few<Column, 2> c;
    clear<S, R>(c);
    MatrixPass<writes, S, R, updates, 2>::run(G, columns, pending, {{p.looked_up}, {two.k}}, c);
    const RowFades<Column, fading == Fade::all ? fading : Fade::none> fades(p, first, rows);
    Column dy1 = load_part<Column>(one.dy + first, 0, rows);
    Column dy2 = load_part<Column>(two.dy + first, 0, rows);
    if (p.lonely) dy2 = Column::all(S(0));
    Column &c1 = c.first.only, &c2 = c.second.only;
    found(fades, c);
    c2.add(dy2, p.met[3]);
    c1.add(dy2, p.met[2]);
    Column g2 = c2;
    g2.scale(-two.beta);
    if constexpr (Corrects) c1.add(g2, p.met[0]);
    fades.by_two(c1);
    c1.add(dy1, p.met[1]);
    if constexpr (Corrects) {
      Column g1 = c1;
      g1.scale(-one.beta);
      store_part(c1, one.c + first, 0, rows);
      add_to(one.dv + first, c1, one.beta, rows);
      if (!p.lonely) {
        store_part(c2, two.c + first, 0, rows);
        add_to(two.dv + first, c2, two.beta, rows);
      }
      fades.written_back(dy1, dy2);
      fades.written_back(g1, g2);
      pending = {{{{dy1}, {g1}}, {{dy2}, {g2}}},
                 {{{one.q_before}, {one.k_before}}, {{two.q_before}, {two.k_before}}},
                 p.fades};
    } else {
      add_to(one.c + first, c1, one.beta, rows);
      if (!p.lonely) add_to(two.c + first, c2, two.beta, rows);
      fades.written_back(dy1, dy2);
      pending = {{{dy1}, {dy2}}, {{one.q_before}, {two.q_before}}, p.fades};
    }
    fades.into(pending);
  }
};

/// Wᵀ through a pair: dq_t and what dk_t has of W.
template <class S, int R, bool Corrects, Fade fading> class PanelQueries {
 public:
  using Column = Rows<S, R>;
  static constexpr int updates = 2, products = Corrects ? 4 : 2;
  static constexpr auto fading_writes = writes_of(fading, Writes::fade_rows);

  static EIGEN_ALWAYS_INLINE void ask(const AheadOf<S>& ahead, const Panel<S>& panel) {
    ahead.columns.ask(panel.first, panel.rows);
    ahead.rows.ask(panel.first_column, panel.columns);
  }

  template <Writes writes>
  static EIGEN_ALWAYS_INLINE void visit(S* W, Index columns, const BackwardPair<S>& p,
                                        Pending<S, R, updates>& pending, Index first, Index rows) {
    const auto &one = p.one, &two = p.two;
    const Vectors<S, 2> dy{{one.dy}, {two.dy}}, c{{one.c}, {two.c}};
    Few<Column, products> sums;
    clear<S, R>(sums);
    if constexpr (Corrects)
      MatrixPass<writes, S, R, 2, 4>::run(W, columns, pending, {dy, c}, sums);
    else
      MatrixPass<writes, S, R, 2, 2>::run(W, columns, pending, dy, sums);
    const RowFades<Column, fading> fades(p, first, rows);
    found(fades, sums);
    Column k1 = load_part<Column>(one.k + first, 0, rows);
    Column k2 = load_part<Column>(two.k + first, 0, rows);
    k1.scale(one.beta);
    k2.scale(two.beta);
    if constexpr (Corrects) {
      Column &dk1 = sums.second.first.only, &dk2 = sums.second.second.only;
      fades.by_one(dk1);
      fades.by_one(dk2);
      dk2.add(k1, p.answered[3]);
      fades.by_two(dk2);
      add_to(one.dk + first, dk1, -one.beta, rows);
      if (!p.lonely) add_to(two.dk + first, dk2, -two.beta, rows);
      if constexpr (fading != Fade::none)
        meet<fading, true>(p, k1, dk1, k2, dk2, first, rows, S(-1));
      finish(p, sums.first, k1, k2, fades, first, rows);
    } else {
      finish(p, sums, k1, k2, fades, first, rows);
    }
    fades.by_two(k1);
    fades.written(k1);
    fades.written(k2);
    pending = {{{k1}, {k2}}, {{one.u}, {two.u}}};
    fades.into(pending);
  }

 private:
  static EIGEN_ALWAYS_INLINE void finish(const BackwardPair<S>& p, Few<Column, 2> dq,
                                         const Column& k1, const Column& k2,
                                         const RowFades<Column, fading>& fades, Index first,
                                         Index rows) {
    Column &dq1 = dq.first.only, &dq2 = dq.second.only;
    fades.by_one(dq1);
    fades.by_one(dq2);
    dq1.add(k1, p.answered[0]);
    dq2.add(k1, p.answered[1]);
    fades.by_two(dq2);
    dq2.add(k2, p.answered[2]);
    add_to(p.one.dq + first, dq1, S(1), rows);
    if (!p.lonely) add_to(p.two.dq + first, dq2, S(1), rows);
    if constexpr (fading != Fade::none)
      meet<fading, true>(p, load_part<Column>(p.one.q + first, 0, rows), dq1,
                         load_part<Column>(p.two.q + first, 0, rows), dq2, first, rows);
  }
};

/// Gᵀ through a pair, the later token first: what dk_t has of G.
template <class S, int R, bool Corrects, Fade fading> class PanelKeys {
 public:
  using Column = Rows<S, R>;
  static constexpr int updates = Corrects ? 4 : 2, products = 2;
  static constexpr auto fading_writes = writes_of(fading, Writes::fade_rows);

  static EIGEN_ALWAYS_INLINE void ask(const AheadOf<S>& ahead, const Panel<S>& panel) {
    ahead.columns.ask(panel.first, panel.rows);
  }

  template <Writes writes>
  static EIGEN_ALWAYS_INLINE void visit(S* G, Index columns, const BackwardPair<S>& p,
                                        Pending<S, R, updates>& pending, Index first, Index rows) {
    const auto &one = p.one, &two = p.two;
    Few<Column, 2> dk;
    clear<S, R>(dk);
    MatrixPass<writes, S, R, updates, 2>::run(G, columns, pending, {{one.u}, {two.u}}, dk);
    const RowFades<Column, fading> fades(p, first, rows);
    found(fades, dk);
    Column q1 = load_part<Column>(one.q + first, 0, rows);
    Column q2 = load_part<Column>(two.q + first, 0, rows);
    if (p.lonely) q2 = Column::all(S(0));
    Column k1 = load_part<Column>(one.k + first, 0, rows);
    Column k2 = load_part<Column>(two.k + first, 0, rows);
    k1.scale(-one.beta);
    k2.scale(-two.beta);
    Column &dk1 = dk.first.only, &dk2 = dk.second.only;
    dk2.add(q2, p.answered[2]);
    dk1.add(q2, p.answered[1]);
    if constexpr (Corrects) dk1.add(k2, p.answered[3]);
    fades.by_two(dk1);
    dk1.add(q1, p.answered[0]);
    add_to(one.dk + first, dk1, one.beta, rows);
    if (!p.lonely) add_to(two.dk + first, dk2, two.beta, rows);
    if constexpr (fading != Fade::none) meet<fading, false>(p, k1, dk1, k2, dk2, first, rows);
    fades.written_back(q1, q2);
    if constexpr (Corrects) {
      fades.written_back(k1, k2);
      pending = {{{{q1}, {k1}}, {{q2}, {k2}}}, {{{one.dy}, {one.c}}, {{two.dy}, {two.c}}}};
    } else {
      pending = {{{q1}, {q2}}, {{one.dy}, {two.dy}}};
    }
    fades.into(pending);
  }
};

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
