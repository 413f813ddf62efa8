#pragma once

#include <fastweights/kernels/backward_pair.hpp>
#include <fastweights/kernels/pass.hpp>

/// \file
/// What the three passes of backward.hpp do to some rows of a matrix at two tokens.

namespace fw::detail {
inline namespace FASTWEIGHTS_KERNELS {

/// gradient += factor x, of `rows` entries.
template <class Column, class S>
EIGEN_ALWAYS_INLINE void add_to(S* gradient, const Column& x, S factor, Index rows) {
  Column sum = load_part<Column>(gradient, 0, rows);
  sum.add(x, factor);
  store_part(sum, gradient, 0, rows);
}

/// G through a pair, the later token first: c_t = G_t k_t.
template <class S, int R, bool Corrects> class PanelErrors {
 public:
  using Column = Rows<S, R>;
  static constexpr int updates = Corrects ? 4 : 2, products = 2;

  template <Writes writes>
  static EIGEN_ALWAYS_INLINE void visit(S* G, Index columns, const BackwardPair<S>& p,
                                        Pending<S, R, updates>& pending, Index first, Index rows) {
    const auto &one = p.one, &two = p.two;
    Few<Column, 2> c;
    clear<S, R>(c);
    MatrixPass<writes, S, R, updates, 2>::run(G, columns, pending, {{one.k}, {two.k}}, c);
    const Column dy1 = load_part<Column>(one.dy + first, 0, rows);
    Column dy2 = load_part<Column>(two.dy + first, 0, rows);
    if (p.lonely) dy2 = Column::all(S(0));
    Column &c1 = c.first.only, &c2 = c.second.only;
    c2.add(dy2, p.met[3]);
    c1.add(dy2, p.met[2]);
    c1.add(dy1, p.met[1]);
    Column g2 = c2;
    g2.scale(-two.beta);
    if constexpr (Corrects) c1.add(g2, p.met[0]);
    Column g1 = c1;
    g1.scale(-one.beta);
    if constexpr (Corrects) {
      store_part(c1, one.c + first, 0, rows);
      if (!p.lonely) store_part(c2, two.c + first, 0, rows);
      pending = {{{{dy1}, {g1}}, {{dy2}, {g2}}}, {{{one.q}, {one.k}}, {{two.q}, {two.k}}}, {}, {}};
    } else {
      add_to(one.c + first, c1, S(1), rows);
      if (!p.lonely) add_to(two.c + first, c2, S(1), rows);
      pending = {{{dy1}, {dy2}}, {{one.q}, {two.q}}, {}, {}};
    }
  }
};

/// Wᵀ through a pair: dq_t and what dk_t has of W.
template <class S, int R, bool Corrects> class PanelQueries {
 public:
  using Column = Rows<S, R>;
  static constexpr int updates = 2, products = Corrects ? 4 : 2;

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
    Column k1 = load_part<Column>(one.k + first, 0, rows);
    Column k2 = load_part<Column>(two.k + first, 0, rows);
    k1.scale(one.beta);
    k2.scale(two.beta);
    pending = {{{k1}, {k2}}, {{one.u}, {two.u}}, {}, {}};
    if constexpr (Corrects) {
      sums.second.second.only.add(k1, p.answered[3]);
      add_to(one.dk + first, sums.second.first.only, -one.beta, rows);
      if (!p.lonely) add_to(two.dk + first, sums.second.second.only, -two.beta, rows);
      finish(p, sums.first, k1, k2, first, rows);
    } else {
      finish(p, sums, k1, k2, first, rows);
    }
  }

 private:
  static EIGEN_ALWAYS_INLINE void finish(const BackwardPair<S>& p, Few<Column, 2> dq,
                                         const Column& k1, const Column& k2, Index first,
                                         Index rows) {
    dq.first.only.add(k1, p.answered[0]);
    add_to(p.one.dq + first, dq.first.only, S(1), rows);
    dq.second.only.add(k1, p.answered[1]);
    dq.second.only.add(k2, p.answered[2]);
    if (!p.lonely) add_to(p.two.dq + first, dq.second.only, S(1), rows);
  }
};

/// Gᵀ through a pair, the later token first: what dk_t has of G.
template <class S, int R, bool Corrects> class PanelKeys {
 public:
  using Column = Rows<S, R>;
  static constexpr int updates = Corrects ? 4 : 2, products = 2;

  template <Writes writes>
  static EIGEN_ALWAYS_INLINE void visit(S* G, Index columns, const BackwardPair<S>& p,
                                        Pending<S, R, updates>& pending, Index first, Index rows) {
    const auto &one = p.one, &two = p.two;
    Few<Column, 2> dk;
    clear<S, R>(dk);
    MatrixPass<writes, S, R, updates, 2>::run(G, columns, pending, {{one.u}, {two.u}}, dk);
    const Column q1 = load_part<Column>(one.q + first, 0, rows);
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
    dk1.add(q1, p.answered[0]);
    add_to(one.dk + first, dk1, one.beta, rows);
    if (!p.lonely) add_to(two.dk + first, dk2, two.beta, rows);
    if constexpr (Corrects)
      pending = {{{{q1}, {k1}}, {{q2}, {k2}}}, {{{one.dy}, {one.c}}, {{two.dy}, {two.c}}}, {}, {}};
    else
      pending = {{{q1}, {q2}}, {{one.dy}, {two.dy}}, {}, {}};
  }
};

/// Takes a panel through pairs.
template <template <class, int, bool> class Panel, class S, int R, bool Corrects>
EIGEN_DONT_INLINE void run_pairs(S* W, Index columns, const BackwardPair<S>* pairs, Index count,
                                 Index first, Index rows) {
  using Of = Panel<S, R, Corrects>;
  Pending<S, R, Of::updates> pending;
  Of::template visit<Writes::nothing>(W, columns, pairs[0], pending, first, rows);
  for (Index i = 1; i < count; ++i)
    Of::template visit<Writes::updates>(W, columns, pairs[i], pending, first, rows);
  MatrixPass<Writes::updates, S, R, Of::updates, Of::products>::write(W, columns, pending);
}

}  // namespace FASTWEIGHTS_KERNELS
}  // namespace fw::detail
