#pragma once

#include <fastweights/kernels/scan/matrix_pass.hpp>
#include <fastweights/kernels/scan/panels.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// True if one pass processes two pairs. Rules without a delta term compute so little per pair that
/// loads and stores of W dominate. Two pairs need more registers.
template <bool HasLookups, DecayKind decay_kind>
inline constexpr bool two_pairs_per_pass =
    !HasLookups && decay_kind != DecayKind::per_channel && decay_kind != DecayKind::per_value_row &&
    EIGEN_ARCH_DEFAULT_NUMBER_OF_REGISTERS >= 32;

/// Processes pairs of tokens for a panel, which is some rows of a matrix W. PanelPass defines the
/// work for a pair:
///
///     static constexpr int updates, products;     // number per pair
///     static constexpr PassWrites writes_after_decay;
///     static constexpr bool defers;               // decays per channel, as ColumnDecays
///     static void prefetch(prefetches, panel);    // for later tokens
///     static Vectors<S, products> factors(pair);  // the vectors x of the products W x
///     // Computes outputs and pending updates from the products.
///     static void finish(pair, RegisterTuple<Column, products>& sums,
///                        Pending<S, R, updates>& pending, panel);
///
/// For two pairs per pass it also has the products of the factors with the vectors of the previous
/// pair's updates, v:
///
///     static const S* previous_products(pair);  // v_1·x_1, v_2·x_1, v_1·x_2, v_2·x_2
template <class PanelPass, class S, int R, bool HasLookups, DecayKind decay_kind> class PairLoop {
 public:
  /// Not inline: programs that link fastweights::compiled do not compile it again.
  template <class Pair>
  static EIGEN_DONT_INLINE void run(const Panel<S>& panel, Index columns, const Pair* pairs,
                                    Index count) {
    if constexpr (two_pairs_per_pass<HasLookups, decay_kind>) {
      PendingUpdates<2 * updates> pending;
      PendingUpdates<updates> last;
      if (count == 1) {
        visit<PassWrites::nothing>(panel, columns, pairs[0], last, last);
        return write(panel, columns, last);
      }
      visit_two<PassWrites::nothing>(panel, columns, pairs, pending);
      Index i = 2;
      for (; i + 1 < count; i += 2)
        if (has_decay<decay_kind, defers>(pending))
          visit_two<PanelPass::writes_after_decay>(panel, columns, pairs + i, pending);
        else
          visit_two<PassWrites::updates>(panel, columns, pairs + i, pending);
      if (i == count) return write(panel, columns, pending);
      if (has_decay<decay_kind, defers>(pending))
        visit<PanelPass::writes_after_decay>(panel, columns, pairs[i], pending, last);
      else
        visit<PassWrites::updates>(panel, columns, pairs[i], pending, last);
      write(panel, columns, last);
    } else {
      PendingUpdates<updates> pending;
      visit<PassWrites::nothing>(panel, columns, pairs[0], pending, pending);
      for (Index i = 1; i < count; ++i)
        if (has_decay<decay_kind, defers>(pending))
          visit<PanelPass::writes_after_decay>(panel, columns, pairs[i], pending, pending);
        else
          visit<PassWrites::updates>(panel, columns, pairs[i], pending, pending);
      write(panel, columns, pending);
    }
  }

 private:
  using Column = Rows<S, R>;
  template <int U> using PendingUpdates = Pending<S, R, U>;
  static constexpr int updates = PanelPass::updates, products = PanelPass::products;
  static constexpr bool defers = PanelPass::defers;

  template <PassWrites writes, int U, class Pair>
  static EIGEN_ALWAYS_INLINE void visit(const Panel<S>& panel, Index columns, const Pair& p,
                                        const PendingUpdates<U>& before,
                                        PendingUpdates<updates>& pending) {
    PanelPass::prefetch(p.prefetches, panel);
    RegisterTuple<Column, products> sums;
    clear<S, R>(sums);
    MatrixPass<writes, S, R, U, products>::run(panel.data, columns, before, PanelPass::factors(p),
                                               sums);
    PanelPass::finish(p, sums, pending, panel);
  }

  template <int U>
  static EIGEN_ALWAYS_INLINE void write(const Panel<S>& panel, Index columns,
                                        const PendingUpdates<U>& pending) {
    if (has_decay<decay_kind, defers>(pending))
      MatrixPass<PanelPass::writes_after_decay, S, R, U, products>::write(panel.data, columns,
                                                                          pending);
    else
      MatrixPass<PassWrites::updates, S, R, U, products>::write(panel.data, columns, pending);
  }

  template <PassWrites writes, class Pair>
  static EIGEN_ALWAYS_INLINE void visit_two(const Panel<S>& panel, Index columns, const Pair* pairs,
                                            PendingUpdates<2 * updates>& pending) {
    const Pair &p = pairs[0], &r = pairs[1];
    PanelPass::prefetch(p.prefetches, panel);
    RegisterTuple<Column, 2 * products> sums;
    clear<S, R>(sums);
    MatrixPass<writes, S, R, 2 * updates, 2 * products>::run(
        panel.data, columns, pending, {PanelPass::factors(p), PanelPass::factors(r)}, sums);
    // Separate from the first prefetch, because the number of outstanding memory requests is
    // limited.
    PanelPass::prefetch(r.prefetches, panel);
    PendingUpdates<updates> first, second;
    PanelPass::finish(p, sums.first, first, panel);
    add_previous_updates(first, PanelPass::previous_products(r), sums.second);
    PanelPass::finish(r, sums.second, second, panel);
    if constexpr (decay_kind == DecayKind::scalar) scale(first.updates, second.decay);
    pending = {{first.updates, second.updates},
               {first.vectors, second.vectors},
               nullptr,
               first.decay * second.decay};
  }

  // Adds the effect of the first pair's updates to the products of the second pair.
  static EIGEN_ALWAYS_INLINE void add_previous_updates(const PendingUpdates<2>& pending,
                                                       const S* previous_products,
                                                       RegisterTuple<Column, 2>& sums) {
    if constexpr (decay_kind == DecayKind::scalar) scale(sums, pending.decay);
    const auto &u1 = pending.updates.first.only, &u2 = pending.updates.second.only;
    sums.first.only.add(u1, previous_products[0]);
    sums.first.only.add(u2, previous_products[1]);
    sums.second.only.add(u1, previous_products[2]);
    sums.second.only.add(u2, previous_products[3]);
  }
  static EIGEN_ALWAYS_INLINE void scale(RegisterTuple<Column, 2>& x, S factor) {
    x.first.only.scale(factor);
    x.second.only.scale(factor);
  }
};

/// Processes `count` pairs for a panel of at most `tallest` packets.
template <template <class, int, bool, DecayKind> class PanelPass, int tallest, bool HasLookups,
          DecayKind decay_kind, class S, class Pair>
void run_pairs(const Panel<S>& panel, Index columns, const Pair* pairs, Index count) {
  if (panel.packets == 1)
    PairLoop<PanelPass<S, 1, HasLookups, decay_kind>, S, 1, HasLookups, decay_kind>::run(
        panel, columns, pairs, count);
  else if (panel.packets == 2)
    PairLoop<PanelPass<S, 2, HasLookups, decay_kind>, S, 2, HasLookups, decay_kind>::run(
        panel, columns, pairs, count);
  else
    PairLoop<PanelPass<S, tallest, HasLookups, decay_kind>, S, tallest, HasLookups,
             decay_kind>::run(panel, columns, pairs, count);
}

}  // namespace fw::detail
