#pragma once

#include <fastweights/kernels/backward/panel_pass.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// One pair of the forward pass: updates Wᵀ, computes dq_t = W_tᵀ dy_t and adds dk_t −= β_t W̄_tᵀ
/// du_t.
template <class S, int R, bool HasDeltaTerm, DecayKind decay_kind> class PanelQueries {
 public:
  using Column = Rows<S, R>;
  static constexpr int updates = 2, products = HasDeltaTerm ? 4 : 2;
  static constexpr auto writes_after_decay = writes_of(decay_kind, PassWrites::decay_rows);

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
  static EIGEN_ALWAYS_INLINE const S* previous_products(const BackwardPair<S>& p) {
    return p.previous_error_products;
  }

  static EIGEN_ALWAYS_INLINE void finish(const BackwardPair<S>& p, Group<Column, products>& sums,
                                         Pending<S, R, updates>& pending, const Panel<S>& panel) {
    const auto &one = p.one, &two = p.two;
    const Index first = panel.first, rows = panel.rows;
    const RowDecays<Column, decay_kind> decays(p, first, rows);
    scale_products(decays, sums);
    Column k1 = load_part<Column>(one.k + first, 0, rows);
    Column k2 = load_part<Column>(two.k + first, 0, rows);
    k1.scale(one.beta);
    k2.scale(two.beta);
    if constexpr (HasDeltaTerm) {
      Column &dk1 = sums.second.first.only, &dk2 = sums.second.second.only;
      decays.decay_one(dk1);
      decays.decay_one(dk2);
      dk2.add(k1, p.error_products[3]);
      decays.decay_two(dk2);
      add_to(one.dk + first, dk1, -one.beta, rows);
      if (!p.single) add_to(two.dk + first, dk2, -two.beta, rows);
      if constexpr (decay_kind != DecayKind::none)
        add_decay_terms<decay_kind, true>(p, k1, dk1, k2, dk2, first, rows, S(-1));
      add_query_gradients(p, sums.first, k1, k2, decays, first, rows);
    } else {
      add_query_gradients(p, sums, k1, k2, decays, first, rows);
    }
    decays.decay_two(k1);
    decays.scale_update(k1);
    decays.scale_update(k2);
    pending = {{{k1}, {k2}}, {{one.e}, {two.e}}};
    decays.set_pending_decay(pending);
  }

 private:
  static EIGEN_ALWAYS_INLINE void add_query_gradients(const BackwardPair<S>& p, Group<Column, 2> dq,
                                                      const Column& k1, const Column& k2,
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
