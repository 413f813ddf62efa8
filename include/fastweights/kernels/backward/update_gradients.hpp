#pragma once

#include <fastweights/kernels/backward/panel_pass.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// One pair of the first backward pass, the later token first: updates G and computes the
/// gradients of the updates, du_t = G_t k_t.
template <class S, int R, bool HasDeltaTerm, DecayKind decay_kind> class PanelUpdateGradients {
 public:
  using Column = Rows<S, R>;
  static constexpr int updates = HasDeltaTerm ? 4 : 2, products = 2;
  static constexpr auto writes_after_decay = writes_of(decay_kind, PassWrites::decay_columns);

  static EIGEN_ALWAYS_INLINE void prefetch(const Prefetches<S>& prefetches, const Panel<S>& panel) {
    prefetches.rows.prefetch(panel.first, panel.rows);
  }

  static EIGEN_ALWAYS_INLINE Vectors<S, products> factors(const BackwardPair<S>& p) {
    return {{p.lookup_key}, {p.two.k}};
  }
  static EIGEN_ALWAYS_INLINE const S* previous_products(const BackwardPair<S>& p) {
    return p.previous_key_products;
  }

  static EIGEN_ALWAYS_INLINE void finish(const BackwardPair<S>& p, Group<Column, products>& du,
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
    if constexpr (HasDeltaTerm) du1.add(g2, p.key_products[0]);
    decays.decay_two(du1);
    du1.add(dy1, p.key_products[1]);
    if constexpr (HasDeltaTerm) {
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

}  // namespace fw::detail
