#pragma once

#include <fastweights/kernels/panel.hpp>

namespace fw::detail {
inline namespace FASTWEIGHTS_KERNELS {

/// Whether pairs of a rule are taken two at a time: one that does not look up what a key retrieves
/// has so little to do for a pair that loads and stores of W show. Needs registers.
template <Fade fading, bool Corrects>
inline constexpr bool by_two_pairs =
    !Corrects && fading != Fade::columns && EIGEN_ARCH_DEFAULT_NUMBER_OF_REGISTERS >= 32;

/// Takes a panel through an even number of pairs of such a rule.
template <class S, int R, Fade fading> class PanelSum {
 public:
  static EIGEN_DONT_INLINE void run(const Panel<S>& panel, Index columns, const Pair<S>* pairs,
                                    Index count) {
    S* const W = panel.data;
    Pending<S, R, 4> pending;
    visit<Writes::nothing>(W, columns, pairs, pending, panel);
    for (Index i = 2; i < count; i += 2)
      if (fades<fading>(pending))
        visit<Writes::fade_all>(W, columns, pairs + i, pending, panel);
      else
        visit<Writes::updates>(W, columns, pairs + i, pending, panel);
    if (fades<fading>(pending))
      MatrixPass<Writes::fade_all, S, R, 4, 4>::write(W, columns, pending);
    else
      MatrixPass<Writes::updates, S, R, 4, 4>::write(W, columns, pending);
  }

 private:
  using Column = Rows<S, R>;
  using Scan = PanelScan<S, R, fading, false>;

  template <Writes writes>
  static EIGEN_ALWAYS_INLINE void visit(S* W, Index columns, const Pair<S>* pairs,
                                        Pending<S, R, 4>& pending, const Panel<S>& panel) {
    const Pair<S>&p = pairs[0], &r = pairs[1];
    Scan::ask(p.ahead, panel);
    Few<Column, 4> sums;
    clear<S, R>(sums);
    MatrixPass<writes, S, R, 4, 4>::run(
        W, columns, pending, {{{p.one.asked}, {p.two.asked}}, {{r.one.asked}, {r.two.asked}}},
        sums);
    Scan::ask(r.ahead, panel);  // not both at once: the memory answers so many at a time
    Pending<S, R, 2> first, second;
    Scan::answer(p, sums.first, sums.first, first, panel.first, panel.rows);
    carry(p, r, first, sums.second);
    Scan::answer(r, sums.second, sums.second, second, panel.first, panel.rows);
    if constexpr (fading == Fade::all) {
      scale(first.updates, r.fade);
      pending.fade = p.fade * r.fade;
    }
    pending.updates = {first.updates, second.updates};
    pending.by = {first.by, second.by};
  }

  // What the second pair finds in the matrix as the first leaves it.
  static EIGEN_ALWAYS_INLINE void carry(const Pair<S>& p, const Pair<S>& r,
                                        const Pending<S, R, 2>& left, Few<Column, 2>& asked) {
    if constexpr (fading == Fade::all) scale(asked, p.fade);
    const auto &e1 = left.updates.first.only, &e2 = left.updates.second.only;
    asked.first.only.add(e1, r.carried[0]);
    asked.first.only.add(e2, r.carried[1]);
    asked.second.only.add(e1, r.carried[2]);
    asked.second.only.add(e2, r.carried[3]);
  }

  static EIGEN_ALWAYS_INLINE void scale(Few<Column, 2>& x, S factor) {
    x.first.only.scale(factor);
    x.second.only.scale(factor);
  }
};

}  // namespace FASTWEIGHTS_KERNELS
}  // namespace fw::detail
