#pragma once

#include <fastweights/kernels/backward/panel_pass.hpp>

namespace fw::detail {
inline namespace FASTWEIGHTS_KERNELS {

/// Gᵀ through a pair, the later token first: what dk_t has of G.
template <class S, int R, bool HasDeltaTerm, DecayKind decay_kind> class PanelKeys {
 public:
  using Column = Rows<S, R>;
  static constexpr int updates = HasDeltaTerm ? 4 : 2, products = 2;
  static constexpr auto decay_writes = writes_of(decay_kind, Writes::fade_rows);

  static EIGEN_ALWAYS_INLINE void prefetch(const Prefetches<S>& prefetches, const Panel<S>& panel) {
    prefetches.columns.prefetch(panel.first, panel.rows);
  }

  static EIGEN_ALWAYS_INLINE Vectors<S, products> factors(const BackwardPair<S>& p) {
    return {{p.one.u}, {p.two.u}};
  }
  static EIGEN_ALWAYS_INLINE const S* carried(const BackwardPair<S>& p) {
    return p.carried_answers;
  }

  static EIGEN_ALWAYS_INLINE void answer(const BackwardPair<S>& p, Group<Column, products>& dk,
                                         Pending<S, R, updates>& left, const Panel<S>& panel) {
    const auto &one = p.one, &two = p.two;
    const Index first = panel.first, rows = panel.rows;
    const RowFades<Column, decay_kind> fades(p, first, rows);
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
    if constexpr (HasDeltaTerm) dk1.add(k2, p.answered[3]);
    fades.by_two(dk1);
    dk1.add(q1, p.answered[0]);
    add_to(one.dk + first, dk1, one.beta, rows);
    if (!p.lonely) add_to(two.dk + first, dk2, two.beta, rows);
    if constexpr (decay_kind != DecayKind::none)
      add_decay_terms<decay_kind, false>(p, k1, dk1, k2, dk2, first, rows);
    fades.written_back(q1, q2);
    if constexpr (HasDeltaTerm) {
      fades.written_back(k1, k2);
      left = {{{{q1}, {k1}}, {{q2}, {k2}}}, {{{one.dy}, {one.c}}, {{two.dy}, {two.c}}}};
    } else {
      left = {{{q1}, {q2}}, {{one.dy}, {two.dy}}};
    }
    fades.into(left);
  }
};

}  // namespace FASTWEIGHTS_KERNELS
}  // namespace fw::detail
