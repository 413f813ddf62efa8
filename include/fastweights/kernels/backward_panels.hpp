#pragma once

#include <fastweights/kernels/backward_pair.hpp>
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

/// Some rows of the decays of a pair; nothing where the past does not fade.
template <class Column, bool Fades> struct RowFades {
  Column one, two;

  template <class S>
  EIGEN_ALWAYS_INLINE RowFades(const BackwardPair<S>& p, Index first, Index rows) {
    if constexpr (Fades) {
      one = load_part<Column>(p.one.decays + first, 0, rows);
      two = load_part<Column>(p.two.decays + first, 0, rows);
    }
  }
  EIGEN_ALWAYS_INLINE void by_one(Column& x) const {
    if constexpr (Fades) x.scale(one);
  }
  EIGEN_ALWAYS_INLINE void by_two(Column& x) const {
    if constexpr (Fades) x.scale(two);
  }
  EIGEN_ALWAYS_INLINE Column both() const {
    Column fades = two;
    by_one(fades);
    return fades;
  }
};

/// met = x ∘ dx of both tokens, or met += factor x ∘ dx; nothing where nobody asks for it.
template <bool adds, class Column, class S>
EIGEN_ALWAYS_INLINE void meet(const BackwardPair<S>& p, const Column& x1, Column dx1,
                              const Column& x2, Column dx2, Index first, Index rows,
                              [[maybe_unused]] S factor = S(1)) {
  if (p.one.met == nullptr) return;
  const auto put = [&](S* met, const Column& x) {
    if constexpr (adds)
      add_to(met + first, x, factor, rows);
    else
      store_part(x, met + first, 0, rows);
  };
  dx1.scale(x1);
  dx2.scale(x2);
  put(p.one.met, dx1);
  if (!p.lonely) put(p.two.met, dx2);
}

/// G through a pair, the later token first: c_t = G_t k_t.
template <class S, int R, bool Corrects, bool Fades> class PanelErrors {
 public:
  using Column = Rows<S, R>;
  static constexpr int updates = Corrects ? 4 : 2, products = 2;
  static constexpr auto writes_with = Fades ? Writes::fade_columns : Writes::updates;

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
    const Column dy1 = load_part<Column>(one.dy + first, 0, rows);
    Column dy2 = load_part<Column>(two.dy + first, 0, rows);
    if (p.lonely) dy2 = Column::all(S(0));
    Column &c1 = c.first.only, &c2 = c.second.only;
    c2.add(dy2, p.met[3]);
    c1.add(dy2, p.met[2]);
    c1.add(dy1, p.met[1]);
    if constexpr (Corrects) {
      Column g2 = c2;
      g2.scale(-two.beta);
      c1.add(g2, p.met[0]);
      Column g1 = c1;
      g1.scale(-one.beta);
      store_part(c1, one.c + first, 0, rows);
      add_to(one.dv + first, c1, one.beta, rows);
      if (!p.lonely) {
        store_part(c2, two.c + first, 0, rows);
        add_to(two.dv + first, c2, two.beta, rows);
      }
      pending = {{{{dy1}, {g1}}, {{dy2}, {g2}}},
                 {{{one.q_before}, {one.k_before}}, {{two.q_before}, {two.k_before}}},
                 p.fades};
    } else {
      add_to(one.c + first, c1, one.beta, rows);
      if (!p.lonely) add_to(two.c + first, c2, two.beta, rows);
      pending = {{{dy1}, {dy2}}, {{one.q_before}, {two.q_before}}, p.fades};
    }
  }
};

/// Wᵀ through a pair: dq_t and what dk_t has of W.
template <class S, int R, bool Corrects, bool Fades> class PanelQueries {
 public:
  using Column = Rows<S, R>;
  static constexpr int updates = 2, products = Corrects ? 4 : 2;
  static constexpr auto writes_with = Fades ? Writes::fade_rows : Writes::updates;

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
    const RowFades<Column, Fades> fades(p, first, rows);
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
      if constexpr (Fades) meet<true>(p, k1, dk1, k2, dk2, first, rows, S(-1));
      finish(p, sums.first, k1, k2, fades, first, rows);
    } else {
      finish(p, sums, k1, k2, fades, first, rows);
    }
    fades.by_two(k1);
    pending = {{{k1}, {k2}}, {{one.u}, {two.u}}, nullptr, S(1), fades.both()};
  }

 private:
  static EIGEN_ALWAYS_INLINE void finish(const BackwardPair<S>& p, Few<Column, 2> dq,
                                         const Column& k1, const Column& k2,
                                         const RowFades<Column, Fades>& fades, Index first,
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
    if constexpr (Fades)
      meet<true>(p, load_part<Column>(p.one.q + first, 0, rows), dq1,
                 load_part<Column>(p.two.q + first, 0, rows), dq2, first, rows);
  }
};

/// Gᵀ through a pair, the later token first: what dk_t has of G.
template <class S, int R, bool Corrects, bool Fades> class PanelKeys {
 public:
  using Column = Rows<S, R>;
  static constexpr int updates = Corrects ? 4 : 2, products = 2;
  static constexpr auto writes_with = Fades ? Writes::fade_rows : Writes::updates;

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
    const RowFades<Column, Fades> fades(p, first, rows);
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
    if constexpr (Fades) meet<false>(p, k1, dk1, k2, dk2, first, rows);
    fades.by_one(q1);
    fades.by_one(q2);
    fades.by_two(q2);
    if constexpr (Corrects) {
      fades.by_one(k1);
      fades.by_one(k2);
      fades.by_two(k2);
      pending = {{{{q1}, {k1}}, {{q2}, {k2}}},
                 {{{one.dy}, {one.c}}, {{two.dy}, {two.c}}},
                 nullptr,
                 S(1),
                 fades.both()};
    } else {
      pending = {{{q1}, {q2}}, {{one.dy}, {two.dy}}, nullptr, S(1), fades.both()};
    }
  }
};

/// Takes a panel through pairs.
template <template <class, int, bool, bool> class Visits, class S, int R, bool Corrects, bool Fades>
EIGEN_DONT_INLINE void run_pairs(const Panel<S>& panel, Index columns, const BackwardPair<S>* pairs,
                                 Index count) {
  using Of = Visits<S, R, Corrects, Fades>;
  S* const W = panel.data;
  const Index first = panel.first, rows = panel.rows;
  Pending<S, R, Of::updates> pending;
  Of::ask(pairs[0].ahead, panel);
  Of::template visit<Writes::nothing>(W, columns, pairs[0], pending, first, rows);
  for (Index i = 1; i < count; ++i) {
    Of::ask(pairs[i].ahead, panel);
    Of::template visit<Of::writes_with>(W, columns, pairs[i], pending, first, rows);
  }
  MatrixPass<Of::writes_with, S, R, Of::updates, Of::products>::write(W, columns, pending);
}

}  // namespace FASTWEIGHTS_KERNELS
}  // namespace fw::detail
