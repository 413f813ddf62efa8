#pragma once

#include <fastweights/kernels/backward/panel_pass.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// One pair of the second backward pass, the later token first: updates Gᵀ and adds dk_t += β_t
/// G_tᵀ e_t.
template <class S, int R, bool HasDeltaTerm, DecayKind decay_kind> class PanelKeys {
 public:
  using Column = Rows<S, R>;
  static constexpr int updates = HasDeltaTerm ? 4 : 2, products = 2;
  static constexpr auto writes_after_decay = writes_of(decay_kind, PassWrites::decay_rows);

  static EIGEN_ALWAYS_INLINE void prefetch(const Prefetches<S>& prefetches, const Panel<S>& panel) {
    prefetches.columns.prefetch(panel.first, panel.rows);
  }

  static EIGEN_ALWAYS_INLINE Vectors<S, products> factors(const BackwardPair<S>& p) {
    return {{p.one.e}, {p.two.e}};
  }
  static EIGEN_ALWAYS_INLINE const S* previous_products(const BackwardPair<S>& p) {
    return p.previous_error_products;
  }

  static EIGEN_ALWAYS_INLINE void finish(const BackwardPair<S>& p, Group<Column, products>& dk,
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
    if constexpr (HasDeltaTerm) dk1.add(k2, p.error_products[3]);
    decays.decay_two(dk1);
    dk1.add(q1, p.error_products[0]);
    add_to(one.dk + first, dk1, one.beta, rows);
    if (!p.single) add_to(two.dk + first, dk2, two.beta, rows);
    if constexpr (decay_kind != DecayKind::none)
      add_decay_terms<decay_kind, false>(p, k1, dk1, k2, dk2, first, rows);
    decays.scale_backward_updates(q1, q2);
    if constexpr (HasDeltaTerm) {
      decays.scale_backward_updates(k1, k2);
      pending = {{{{q1}, {k1}}, {{q2}, {k2}}}, {{{one.dy}, {one.du}}, {{two.dy}, {two.du}}}};
    } else {
      pending = {{{q1}, {q2}}, {{one.dy}, {two.dy}}};
    }
    decays.set_pending_decay(pending);
  }
};

}  // namespace fw::detail
