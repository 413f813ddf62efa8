#pragma once

#include <fastweights/kernels/backward/panel_pass.hpp>

namespace fw::detail {
inline namespace FASTWEIGHTS_KERNELS {

/// Wᵀ through a pair: dq_t and what dk_t has of W.
template <class S, int R, bool HasDeltaTerm, DecayKind decay_kind> class PanelQueries {
 public:
  using Column = Rows<S, R>;
  static constexpr int updates = 2, products = HasDeltaTerm ? 4 : 2;
  static constexpr auto decay_writes = writes_of(decay_kind, Writes::fade_rows);

  static EIGEN_ALWAYS_INLINE void prefetch(const Prefetches<S>& prefetches, const Panel<S>& panel) {
    prefetches.columns.prefetch(panel.first, panel.rows);
    prefetches.rows.prefetch(panel.first_column, panel.columns);
  }

  static EIGEN_ALWAYS_INLINE Vectors<S, products> factors(const BackwardPair<S>& p) {
    const Vectors<S, 2> dy{{p.one.dy}, {p.two.dy}};
    if constexpr (HasDeltaTerm)
      return {dy, {{p.one.c}, {p.two.c}}};
    else
      return dy;
  }
  static EIGEN_ALWAYS_INLINE const S* carried(const BackwardPair<S>& p) {
    return p.carried_answers;
  }

  static EIGEN_ALWAYS_INLINE void answer(const BackwardPair<S>& p, Group<Column, products>& sums,
                                         Pending<S, R, updates>& left, const Panel<S>& panel) {
    const auto &one = p.one, &two = p.two;
    const Index first = panel.first, rows = panel.rows;
    const RowFades<Column, decay_kind> fades(p, first, rows);
    found(fades, sums);
    Column k1 = load_part<Column>(one.k + first, 0, rows);
    Column k2 = load_part<Column>(two.k + first, 0, rows);
    k1.scale(one.beta);
    k2.scale(two.beta);
    if constexpr (HasDeltaTerm) {
      Column &dk1 = sums.second.first.only, &dk2 = sums.second.second.only;
      fades.by_one(dk1);
      fades.by_one(dk2);
      dk2.add(k1, p.answered[3]);
      fades.by_two(dk2);
      add_to(one.dk + first, dk1, -one.beta, rows);
      if (!p.lonely) add_to(two.dk + first, dk2, -two.beta, rows);
      if constexpr (decay_kind != DecayKind::none)
        add_decay_terms<decay_kind, true>(p, k1, dk1, k2, dk2, first, rows, S(-1));
      finish(p, sums.first, k1, k2, fades, first, rows);
    } else {
      finish(p, sums, k1, k2, fades, first, rows);
    }
    fades.by_two(k1);
    fades.written(k1);
    fades.written(k2);
    left = {{{k1}, {k2}}, {{one.u}, {two.u}}};
    fades.into(left);
  }

 private:
  static EIGEN_ALWAYS_INLINE void finish(const BackwardPair<S>& p, Group<Column, 2> dq,
                                         const Column& k1, const Column& k2,
                                         const RowFades<Column, decay_kind>& fades, Index first,
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
    if constexpr (decay_kind != DecayKind::none)
      add_decay_terms<decay_kind, true>(p, load_part<Column>(p.one.q + first, 0, rows), dq1,
                                        load_part<Column>(p.two.q + first, 0, rows), dq2, first,
                                        rows);
  }
};

}  // namespace FASTWEIGHTS_KERNELS
}  // namespace fw::detail
