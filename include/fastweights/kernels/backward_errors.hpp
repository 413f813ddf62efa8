#pragma once

#include <fastweights/kernels/backward_visits.hpp>

namespace fw::detail {
inline namespace FASTWEIGHTS_KERNELS {

/// G through a pair, the later token first: c_t = G_t k_t.
template <class S, int R, bool Corrects, Fade fading> class PanelErrors {
 public:
  using Column = Rows<S, R>;
  static constexpr int updates = Corrects ? 4 : 2, products = 2;
  static constexpr auto fading_writes = writes_of(fading, Writes::fade_columns);

  static EIGEN_ALWAYS_INLINE void ask(const AheadOf<S>& ahead, const Panel<S>& panel) {
    ahead.rows.ask(panel.first, panel.rows);
  }

  static EIGEN_ALWAYS_INLINE Vectors<S, products> asked(const BackwardPair<S>& p) {
    return {{p.looked_up}, {p.two.k}};
  }
  static EIGEN_ALWAYS_INLINE const S* carried(const BackwardPair<S>& p) { return p.carried_keys; }

  static EIGEN_ALWAYS_INLINE void answer(const BackwardPair<S>& p, Few<Column, products>& c,
                                         Pending<S, R, updates>& left, const Panel<S>& panel) {
    const auto &one = p.one, &two = p.two;
    const Index first = panel.first, rows = panel.rows;
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
      left = {{{{dy1}, {g1}}, {{dy2}, {g2}}},
              {{{one.q_before}, {one.k_before}}, {{two.q_before}, {two.k_before}}},
              p.fades};
    } else {
      add_to(one.c + first, c1, one.beta, rows);
      if (!p.lonely) add_to(two.c + first, c2, two.beta, rows);
      fades.written_back(dy1, dy2);
      left = {{{dy1}, {dy2}}, {{one.q_before}, {two.q_before}}, p.fades};
    }
    fades.into(left);
  }
};

}  // namespace FASTWEIGHTS_KERNELS
}  // namespace fw::detail
