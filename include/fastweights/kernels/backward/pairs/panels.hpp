#pragma once

#include <fastweights/kernels/backward/pairs/decays.hpp>
#include <fastweights/kernels/scan/pair_loop.hpp>

/// \file
/// PanelUpdateGradients, PanelKeys and PanelQueries, the three passes of PairPasses, process some
/// rows of their matrix for a pair of tokens. In a transposed matrix, decays of columns are decays
/// of rows.

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
EIGEN_ALWAYS_INLINE void scale_products(const Decays& decays, RegisterTuple<Column, 2>& sums) {
  decays.scale_products(sums.first.only);
  decays.scale_products(sums.second.only);
}
template <class Decays, class Column>
EIGEN_ALWAYS_INLINE void scale_products(const Decays& decays, RegisterTuple<Column, 4>& sums) {
  scale_products(decays, sums.first);
  scale_products(decays, sums.second);
}

/// One pair of the first backward pass, the later token first: updates G and computes the
/// gradients of the updates, du_t = G_t k_t.
template <class S, int R, bool HasLookups, DecayKind decay_kind> class PanelUpdateGradients {
 public:
  using Column = Rows<S, R>;
  static constexpr int updates = HasLookups ? 4 : 2, products = 2;
  static constexpr auto writes_after_decay = writes_of(decay_kind, PassWrites::decay_columns);
  static constexpr bool defers = false;

  static EIGEN_ALWAYS_INLINE void prefetch(const Prefetches<S>& prefetches, const Panel<S>& panel) {
    prefetches.rows.prefetch(panel.first, panel.rows);
  }

  static EIGEN_ALWAYS_INLINE Vectors<S, products> factors(const BackwardPair<S>& p) {
    return {{p.lookup_key}, {p.two.k}};
  }
  static EIGEN_ALWAYS_INLINE const S* previous_products(const BackwardPair<S>& p) {
    return p.previous_key_products;
  }

  static EIGEN_ALWAYS_INLINE void finish(const BackwardPair<S>& p,
                                         RegisterTuple<Column, products>& du,
                                         Pending<S, R, updates>& pending, const Panel<S>& panel) {
    const auto &one = p.one, &two = p.two;
    const Index first = panel.first, rows = panel.rows;
    const RowDecays<Column, decay_kind == DecayKind::scalar ? decay_kind : DecayKind::none> decays(
        p, first, rows);
    Column dy1 = load_part<Column>(one.dy + first, 0, rows);
    Column dy2 = load_part<Column>(two.dy + first, 0, rows);
    if (p.single) dy2 = Column::all(S(0));
    Column &du1 = du.first.only, &du2 = du.second.only;
    scale_products(decays, du);
    du2.add(dy2, p.key_products[3]);
    du1.add(dy2, p.key_products[2]);
    Column g2 = du2;
    g2.scale(-two.beta);
    if constexpr (HasLookups) du1.add(g2, p.key_products[0]);
    decays.decay_two(du1);
    du1.add(dy1, p.key_products[1]);
    if constexpr (HasLookups) {
      Column g1 = du1;
      g1.scale(-one.beta);
      store_part(du1, one.du + first, 0, rows);
      add_to(one.dv + first, du1, one.beta, rows);
      if (!p.single) {
        store_part(du2, two.du + first, 0, rows);
        add_to(two.dv + first, du2, two.beta, rows);
      }
      decays.scale_backward_updates(dy1, dy2);
      decays.scale_backward_updates(g1, g2);
      pending = {{{{dy1}, {g1}}, {{dy2}, {g2}}},
                 {{{one.q_before}, {one.k_before}}, {{two.q_before}, {two.k_before}}},
                 p.decays};
    } else {
      add_to(one.dv + first, du1, one.beta, rows);
      if (!p.single) add_to(two.dv + first, du2, two.beta, rows);
      decays.scale_backward_updates(dy1, dy2);
      pending = {{{dy1}, {dy2}}, {{one.q_before}, {two.q_before}}, p.decays};
    }
    decays.set_pending_decay(pending);
  }
};

/// One pair of the second backward pass, the later token first: updates Gᵀ and adds dk_t += β_t
/// G_tᵀ e_t.
template <class S, int R, bool HasLookups, DecayKind decay_kind> class PanelKeys {
 public:
  using Column = Rows<S, R>;
  static constexpr int updates = HasLookups ? 4 : 2, products = 2;
  static constexpr auto writes_after_decay = writes_of(decay_kind, PassWrites::decay_rows);
  static constexpr bool defers = false;

  static EIGEN_ALWAYS_INLINE void prefetch(const Prefetches<S>& prefetches, const Panel<S>& panel) {
    prefetches.columns.prefetch(panel.first, panel.rows);
  }

  static EIGEN_ALWAYS_INLINE Vectors<S, products> factors(const BackwardPair<S>& p) {
    return {{p.one.e}, {p.two.e}};
  }
  static EIGEN_ALWAYS_INLINE const S* previous_products(const BackwardPair<S>& p) {
    return p.previous_error_products;
  }

  static EIGEN_ALWAYS_INLINE void finish(const BackwardPair<S>& p,
                                         RegisterTuple<Column, products>& dk,
                                         Pending<S, R, updates>& pending, const Panel<S>& panel) {
    const auto &one = p.one, &two = p.two;
    const Index first = panel.first, rows = panel.rows;
    const RowDecays<Column, decay_kind> decays(p, first, rows);
    scale_products(decays, dk);
    Column q1 = load_part<Column>(one.q + first, 0, rows);
    Column q2 = load_part<Column>(two.q + first, 0, rows);
    if (p.single) q2 = Column::all(S(0));
    Column k1 = load_part<Column>(one.k + first, 0, rows);
    Column k2 = load_part<Column>(two.k + first, 0, rows);
    k1.scale(-one.beta);
    k2.scale(-two.beta);
    Column &dk1 = dk.first.only, &dk2 = dk.second.only;
    dk2.add(q2, p.error_products[2]);
    dk1.add(q2, p.error_products[1]);
    if constexpr (HasLookups) dk1.add(k2, p.error_products[3]);
    decays.decay_two(dk1);
    dk1.add(q1, p.error_products[0]);
    add_to(one.dk + first, dk1, one.beta, rows);
    if (!p.single) add_to(two.dk + first, dk2, two.beta, rows);
    if constexpr (decay_kind != DecayKind::none)
      add_decay_terms<decay_kind, false>(p, k1, dk1, k2, dk2, first, rows);
    decays.scale_backward_updates(q1, q2);
    if constexpr (HasLookups) {
      decays.scale_backward_updates(k1, k2);
      pending = {{{{q1}, {k1}}, {{q2}, {k2}}}, {{{one.dy}, {one.du}}, {{two.dy}, {two.du}}}};
    } else {
      pending = {{{q1}, {q2}}, {{one.dy}, {two.dy}}};
    }
    decays.set_pending_decay(pending);
  }
};

/// One pair of the forward pass: updates Wᵀ, computes dq_t = W_tᵀ dy_t and adds dk_t −= β_t W̄_tᵀ
/// du_t.
template <class S, int R, bool HasLookups, DecayKind decay_kind> class PanelQueries {
 public:
  using Column = Rows<S, R>;
  static constexpr int updates = 2, products = HasLookups ? 4 : 2;
  static constexpr auto writes_after_decay = writes_of(decay_kind, PassWrites::decay_rows);
  static constexpr bool defers = false;

  static EIGEN_ALWAYS_INLINE void prefetch(const Prefetches<S>& prefetches, const Panel<S>& panel) {
    prefetches.columns.prefetch(panel.first, panel.rows);
    prefetches.rows.prefetch(panel.prefetch_first, panel.prefetch_count);
  }

  static EIGEN_ALWAYS_INLINE Vectors<S, products> factors(const BackwardPair<S>& p) {
    const Vectors<S, 2> dy{{p.one.dy}, {p.two.dy}};
    if constexpr (HasLookups)
      return {dy, {{p.one.du}, {p.two.du}}};
    else
      return dy;
  }
  static EIGEN_ALWAYS_INLINE const S* previous_products(const BackwardPair<S>& p) {
    return p.previous_error_products;
  }

  static EIGEN_ALWAYS_INLINE void finish(const BackwardPair<S>& p,
                                         RegisterTuple<Column, products>& sums,
                                         Pending<S, R, updates>& pending, const Panel<S>& panel) {
    const auto &one = p.one, &two = p.two;
    const Index first = panel.first, rows = panel.rows;
    const RowDecays<Column, decay_kind> decays(p, first, rows);
    scale_products(decays, sums);
    Column k1 = load_part<Column>(one.k + first, 0, rows);
    Column k2 = load_part<Column>(two.k + first, 0, rows);
    k1.scale(one.beta);
    k2.scale(two.beta);
    if constexpr (HasLookups) {
      Column &dk1 = sums.second.first.only, &dk2 = sums.second.second.only;
      decays.decay_one(dk1);
      decays.decay_one(dk2);
      dk2.add(k1, p.error_products[3]);
      decays.decay_two(dk2);
      add_to(one.dk + first, dk1, -one.beta, rows);
      if (!p.single) add_to(two.dk + first, dk2, -two.beta, rows);
      if constexpr (decay_kind != DecayKind::none)
        add_decay_terms<decay_kind, true>(p, k1, dk1, k2, dk2, first, rows, S(-1));
      add_read_gradients(p, sums.first, k1, k2, decays, first, rows);
    } else {
      add_read_gradients(p, sums, k1, k2, decays, first, rows);
    }
    decays.decay_two(k1);
    decays.scale_update(k1);
    decays.scale_update(k2);
    pending = {{{k1}, {k2}}, {{one.e}, {two.e}}};
    decays.set_pending_decay(pending);
  }

 private:
  static EIGEN_ALWAYS_INLINE void add_read_gradients(const BackwardPair<S>& p,
                                                     RegisterTuple<Column, 2> dq, const Column& k1,
                                                     const Column& k2,
                                                     const RowDecays<Column, decay_kind>& decays,
                                                     Index first, Index rows) {
    Column &dq1 = dq.first.only, &dq2 = dq.second.only;
    decays.decay_one(dq1);
    decays.decay_one(dq2);
    dq1.add(k1, p.error_products[0]);
    dq2.add(k1, p.error_products[1]);
    decays.decay_two(dq2);
    dq2.add(k2, p.error_products[2]);
    add_to(p.one.dq + first, dq1, S(1), rows);
    if (!p.single) add_to(p.two.dq + first, dq2, S(1), rows);
    if constexpr (decay_kind != DecayKind::none)
      add_decay_terms<decay_kind, true>(p, load_part<Column>(p.one.q + first, 0, rows), dq1,
                                        load_part<Column>(p.two.q + first, 0, rows), dq2, first,
                                        rows);
  }
};

}  // namespace fw::detail
