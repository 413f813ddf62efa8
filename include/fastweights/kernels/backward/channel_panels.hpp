#pragma once

#include <fastweights/kernels/backward/channel_pairs.hpp>
#include <fastweights/kernels/scan/pair_loop.hpp>

/// \file
/// What the passes do with some rows of their matrix for a pair of tokens, with one decay per
/// column. In a transposed matrix, decays of columns are decays of rows.

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// Rows of the panel of vectors of a pair's tokens.
template <class Column, class S> struct PairRows {
  const BackwardPair<S>& pair;
  const Index first, rows;

  EIGEN_ALWAYS_INLINE PairRows(const BackwardPair<S>& p, const Panel<S>& panel)
      : pair(p), first(panel.first), rows(panel.rows) {}

  EIGEN_ALWAYS_INLINE Column load(const S* from) const {
    return load_part<Column>(from + first, 0, rows);
  }
  EIGEN_ALWAYS_INLINE void store(const Column& x, S* to) const {
    store_part(x, to + first, 0, rows);
  }
  EIGEN_ALWAYS_INLINE void add(S* gradient, const Column& x, S factor) const {
    Column sum = load(gradient);
    sum.add(x, factor);
    store(sum, gradient);
  }
  /// decay_terms = factor x ∘ dx of both tokens, or with `adds` +=. Does nothing without
  /// decay_terms.
  template <bool adds>
  EIGEN_ALWAYS_INLINE void add_decay_terms(const Column& x1, Column dx1, const Column& x2,
                                           Column dx2, S factor = S(1)) const {
    if (pair.one.decay_terms == nullptr) return;
    const auto put = [&](S* decay_terms, const Column& x) {
      if constexpr (adds)
        add(decay_terms, x, factor);
      else
        store(x, decay_terms);
    };
    dx1.scale(x1);
    dx2.scale(x2);
    put(pair.one.decay_terms, dx1);
    if (!pair.single) put(pair.two.decay_terms, dx2);
  }
};

/// The first backward pass, the later token first: updates G and computes du_t = G_t k_t.
template <class S, int R, bool HasDeltaTerm> class PanelUpdateGradients {
 public:
  using Column = Rows<S, R>;
  static constexpr int updates = HasDeltaTerm ? 4 : 2, products = 2;
  static constexpr auto writes_after_decay = PassWrites::decay_columns;

  static EIGEN_ALWAYS_INLINE void prefetch(const Prefetches<S>& prefetches, const Panel<S>& panel) {
    prefetches.rows.prefetch(panel.first, panel.rows);
  }
  static EIGEN_ALWAYS_INLINE Vectors<S, products> factors(const BackwardPair<S>& p) {
    return {{p.lookup_key}, {p.two.k}};
  }

  static EIGEN_ALWAYS_INLINE void finish(const BackwardPair<S>& p, Group<Column, products>& du,
                                         Pending<S, R, updates>& pending, const Panel<S>& panel) {
    const auto &one = p.one, &two = p.two;
    const PairRows<Column, S> rows(p, panel);
    const Column dy1 = rows.load(one.dy), dy2 = p.single ? Column::all(S(0)) : rows.load(two.dy);
    Column &du1 = du.first.only, &du2 = du.second.only;
    du2.add(dy2, p.key_products[3]);
    du1.add(dy2, p.key_products[2]);
    Column g2 = du2;
    g2.scale(-two.beta);
    if constexpr (HasDeltaTerm) du1.add(g2, p.key_products[0]);
    du1.add(dy1, p.key_products[1]);
    rows.add(one.dv, du1, one.beta);
    if (!p.single) rows.add(two.dv, du2, two.beta);
    if constexpr (HasDeltaTerm) {
      Column g1 = du1;
      g1.scale(-one.beta);
      rows.store(du1, one.du);
      if (!p.single) rows.store(du2, two.du);
      pending = {{{{dy1}, {g1}}, {{dy2}, {g2}}},
                 {{{one.q_before}, {one.k_before}}, {{two.q_before}, {two.k_before}}},
                 p.decays};
    } else {
      pending = {{{dy1}, {dy2}}, {{one.q_before}, {two.q_before}}, p.decays};
    }
  }
};

/// The second backward pass, the later token first: updates Gᵀ and adds dk_t += β_t G_tᵀ e_t.
template <class S, int R, bool HasDeltaTerm> class PanelKeys {
 public:
  using Column = Rows<S, R>;
  static constexpr int updates = HasDeltaTerm ? 4 : 2, products = 2;
  static constexpr auto writes_after_decay = PassWrites::decay_rows;

  static EIGEN_ALWAYS_INLINE void prefetch(const Prefetches<S>& prefetches, const Panel<S>& panel) {
    prefetches.columns.prefetch(panel.first, panel.rows);
  }
  static EIGEN_ALWAYS_INLINE Vectors<S, products> factors(const BackwardPair<S>& p) {
    return {{p.one.e}, {p.two.e}};
  }

  static EIGEN_ALWAYS_INLINE void finish(const BackwardPair<S>& p, Group<Column, products>& dk,
                                         Pending<S, R, updates>& pending, const Panel<S>& panel) {
    const auto &one = p.one, &two = p.two;
    const PairRows<Column, S> rows(p, panel);
    const Column decay1 = rows.load(one.decays), decay2 = rows.load(two.decays);
    Column q1 = rows.load(one.q), q2 = p.single ? Column::all(S(0)) : rows.load(two.q);
    Column k1 = rows.load(one.k), k2 = rows.load(two.k);
    k1.scale(-one.beta);
    k2.scale(-two.beta);
    Column &dk1 = dk.first.only, &dk2 = dk.second.only;
    dk2.add(q2, p.error_products[2]);
    dk1.add(q2, p.error_products[1]);
    if constexpr (HasDeltaTerm) dk1.add(k2, p.error_products[3]);
    dk1.scale(decay2);
    dk1.add(q1, p.error_products[0]);
    rows.add(one.dk, dk1, one.beta);
    if (!p.single) rows.add(two.dk, dk2, two.beta);
    rows.template add_decay_terms<false>(k1, dk1, k2, dk2);
    Column both = decay1;
    both.scale(decay2);
    q1.scale(decay1);
    q2.scale(both);
    if constexpr (HasDeltaTerm) {
      k1.scale(decay1);
      k2.scale(both);
      pending = {{{{q1}, {k1}}, {{q2}, {k2}}}, {{{one.dy}, {one.du}}, {{two.dy}, {two.du}}}};
    } else {
      pending = {{{q1}, {q2}}, {{one.dy}, {two.dy}}};
    }
    pending.row_decays = both;
  }
};

/// The forward pass: updates Wᵀ, adds dq_t += W_tᵀ dy_t and dk_t −= β_t W̄_tᵀ du_t.
template <class S, int R, bool HasDeltaTerm> class PanelQueries {
 public:
  using Column = Rows<S, R>;
  static constexpr int updates = 2, products = HasDeltaTerm ? 4 : 2;
  static constexpr auto writes_after_decay = PassWrites::decay_rows;

  static EIGEN_ALWAYS_INLINE void prefetch(const Prefetches<S>& prefetches, const Panel<S>& panel) {
    prefetches.columns.prefetch(panel.first, panel.rows);
    prefetches.rows.prefetch(panel.prefetch_first, panel.prefetch_count);
  }
  static EIGEN_ALWAYS_INLINE Vectors<S, products> factors(const BackwardPair<S>& p) {
    const Vectors<S, 2> dy{{p.one.dy}, {p.two.dy}};
    if constexpr (HasDeltaTerm)
      return {dy, {{p.one.du}, {p.two.du}}};
    else
      return dy;
  }

  static EIGEN_ALWAYS_INLINE void finish(const BackwardPair<S>& p, Group<Column, products>& sums,
                                         Pending<S, R, updates>& pending, const Panel<S>& panel) {
    const auto &one = p.one, &two = p.two;
    const PairRows<Column, S> rows(p, panel);
    const Column decay1 = rows.load(one.decays), decay2 = rows.load(two.decays);
    Column k1 = rows.load(one.k), k2 = rows.load(two.k);
    k1.scale(one.beta);
    k2.scale(two.beta);
    if constexpr (HasDeltaTerm) {
      Column &dk1 = sums.second.first.only, &dk2 = sums.second.second.only;
      dk1.scale(decay1);
      dk2.scale(decay1);
      dk2.add(k1, p.error_products[3]);
      dk2.scale(decay2);
      rows.add(one.dk, dk1, -one.beta);
      if (!p.single) rows.add(two.dk, dk2, -two.beta);
      rows.template add_decay_terms<true>(k1, dk1, k2, dk2, S(-1));
      add_query_gradients(rows, sums.first, k1, k2, decay1, decay2);
    } else {
      add_query_gradients(rows, sums, k1, k2, decay1, decay2);
    }
    k1.scale(decay2);
    pending = {{{k1}, {k2}}, {{one.e}, {two.e}}};
    pending.row_decays = decay1;
    pending.row_decays.scale(decay2);
  }

 private:
  static EIGEN_ALWAYS_INLINE void add_query_gradients(const PairRows<Column, S>& rows,
                                                      Group<Column, 2> dq, const Column& k1,
                                                      const Column& k2, const Column& decay1,
                                                      const Column& decay2) {
    const BackwardPair<S>& p = rows.pair;
    Column &dq1 = dq.first.only, &dq2 = dq.second.only;
    dq1.scale(decay1);
    dq2.scale(decay1);
    dq1.add(k1, p.error_products[0]);
    dq2.add(k1, p.error_products[1]);
    dq2.scale(decay2);
    dq2.add(k2, p.error_products[2]);
    rows.add(p.one.dq, dq1, S(1));
    if (!p.single) rows.add(p.two.dq, dq2, S(1));
    rows.template add_decay_terms<true>(rows.load(p.one.q), dq1, rows.load(p.two.q), dq2);
  }
};

}  // namespace fw::detail
