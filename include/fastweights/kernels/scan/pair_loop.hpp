#pragma once

#include <fastweights/kernels/scan/matrix_pass.hpp>
#include <fastweights/kernels/scan/panels.hpp>

namespace fw::detail {
inline namespace FASTWEIGHTS_KERNELS {

/// Whether a rule's pairs are taken two at a time: one that does not look up what a key retrieves
/// has so little to compute for a pair that loads and stores of W show. It takes registers.
template <bool HasDeltaTerm, DecayKind decay_kind>
inline constexpr bool two_at_a_time = !HasDeltaTerm && decay_kind != DecayKind::per_key &&
                                      EIGEN_ARCH_DEFAULT_NUMBER_OF_REGISTERS >= 32;

/// Takes a panel, some rows of a matrix W, through pairs of tokens. A PanelPass says what happens:
///
///     static constexpr int updates, products;  // of a pair
///     static constexpr Writes decay_writes;
///     static void prefetch(prefetches, panel);  // for later tokens
///     static Vectors<S, products> factors(pair);  // by which W is multiplied
///     static void answer(pair, Group<Column, products>& found, Pending<S, R, updates>& left,
///     panel);
///
/// and, to be taken two at a time, what the vectors of a pair's updates make of the next one's:
///
///     static const S* carried(pair);  // by_1·x_1, by_2·x_1, by_1·x_2, by_2·x_2, x the factors
template <class PanelPass, class S, int R, bool HasDeltaTerm, DecayKind decay_kind> class PairLoop {
 public:
  template <class Pair>
  static EIGEN_ALWAYS_INLINE void run(const Panel<S>& panel, Index columns, const Pair* pairs,
                                      Index count) {
    if constexpr (two_at_a_time<HasDeltaTerm, decay_kind>)
      by_two(panel, columns, pairs, count);
    else
      by_one(panel, columns, pairs, count);
  }

 private:
  using Column = Rows<S, R>;
  template <int U> using Left = Pending<S, R, U>;
  static constexpr int updates = PanelPass::updates, products = PanelPass::products;

  template <class Pair>
  static EIGEN_ALWAYS_INLINE void by_one(const Panel<S>& panel, Index columns, const Pair* pairs,
                                         Index count) {
    Left<updates> left;
    visit<Writes::nothing>(panel, columns, pairs[0], left, left);
    for (Index i = 1; i < count; ++i)
      if (fades<decay_kind>(left))
        visit<PanelPass::decay_writes>(panel, columns, pairs[i], left, left);
      else
        visit<Writes::updates>(panel, columns, pairs[i], left, left);
    write(panel, columns, left);
  }

  template <class Pair>
  static EIGEN_ALWAYS_INLINE void by_two(const Panel<S>& panel, Index columns, const Pair* pairs,
                                         Index count) {
    Left<2 * updates> left;
    Left<updates> last;
    if (count == 1) {
      visit<Writes::nothing>(panel, columns, pairs[0], last, last);
      return write(panel, columns, last);
    }
    visit_two<Writes::nothing>(panel, columns, pairs, left);
    Index i = 2;
    for (; i + 1 < count; i += 2)
      if (fades<decay_kind>(left))
        visit_two<PanelPass::decay_writes>(panel, columns, pairs + i, left);
      else
        visit_two<Writes::updates>(panel, columns, pairs + i, left);
    if (i == count) return write(panel, columns, left);
    if (fades<decay_kind>(left))
      visit<PanelPass::decay_writes>(panel, columns, pairs[i], left, last);
    else
      visit<Writes::updates>(panel, columns, pairs[i], left, last);
    write(panel, columns, last);
  }

  template <Writes writes, int U, class Pair>
  static EIGEN_ALWAYS_INLINE void visit(const Panel<S>& panel, Index columns, const Pair& p,
                                        const Left<U>& before, Left<updates>& left) {
    PanelPass::prefetch(p.prefetches, panel);
    Group<Column, products> found;
    clear<S, R>(found);
    MatrixPass<writes, S, R, U, products>::run(panel.data, columns, before, PanelPass::factors(p),
                                               found);
    PanelPass::answer(p, found, left, panel);
  }

  template <Writes writes, class Pair>
  static EIGEN_ALWAYS_INLINE void visit_two(const Panel<S>& panel, Index columns, const Pair* pairs,
                                            Left<2 * updates>& left) {
    const Pair &p = pairs[0], &r = pairs[1];
    PanelPass::prefetch(p.prefetches, panel);
    Group<Column, 2 * products> found;
    clear<S, R>(found);
    MatrixPass<writes, S, R, 2 * updates, 2 * products>::run(
        panel.data, columns, left, {PanelPass::factors(p), PanelPass::factors(r)}, found);
    PanelPass::prefetch(r.prefetches,
                        panel);  // not both at once: the memory answers so many at a time
    Left<updates> first, second;
    PanelPass::answer(p, found.first, first, panel);
    carry(first, PanelPass::carried(r), found.second);
    PanelPass::answer(r, found.second, second, panel);
    if constexpr (decay_kind == DecayKind::scalar) scale(first.updates, second.fade);
    left = {
        {first.updates, second.updates}, {first.by, second.by}, nullptr, first.fade * second.fade};
  }

  // What the second pair finds in W as the first leaves it.
  static EIGEN_ALWAYS_INLINE void carry(const Left<2>& left, const S* carried,
                                        Group<Column, 2>& found) {
    if constexpr (decay_kind == DecayKind::scalar) scale(found, left.fade);
    const auto &e1 = left.updates.first.only, &e2 = left.updates.second.only;
    found.first.only.add(e1, carried[0]);
    found.first.only.add(e2, carried[1]);
    found.second.only.add(e1, carried[2]);
    found.second.only.add(e2, carried[3]);
  }
  static EIGEN_ALWAYS_INLINE void scale(Group<Column, 2>& x, S factor) {
    x.first.only.scale(factor);
    x.second.only.scale(factor);
  }

  template <int U>
  static EIGEN_ALWAYS_INLINE void write(const Panel<S>& panel, Index columns, const Left<U>& left) {
    if (fades<decay_kind>(left))
      MatrixPass<PanelPass::decay_writes, S, R, U, products>::write(panel.data, columns, left);
    else
      MatrixPass<Writes::updates, S, R, U, products>::write(panel.data, columns, left);
  }
};

/// Takes a panel through `count` pairs. A function that is not inline, so that programs which link
/// fastweights::compiled do not compile it again.
template <template <class, int, bool, DecayKind> class PanelPass, class S, int R, bool HasDeltaTerm,
          DecayKind decay_kind, class Pair>
EIGEN_DONT_INLINE void run_pairs(const Panel<S>& panel, Index columns, const Pair* pairs,
                                 Index count) {
  PairLoop<PanelPass<S, R, HasDeltaTerm, decay_kind>, S, R, HasDeltaTerm, decay_kind>::run(
      panel, columns, pairs, count);
}

}  // namespace FASTWEIGHTS_KERNELS
}  // namespace fw::detail
