#pragma once

#include <fastweights/kernels/scan/pair.hpp>
#include <fastweights/kernels/scan/pair_loop.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// The products with W that a pair of corrections needs: W q of both, W a of both, or for two
/// corrections of one token, `removal`, W a of the first and W q of the second.
enum class Products { queries, lookups, lookups_and_queries, removal };

/// One pair of corrections of a scan, for R packets of rows of W.
template <class S, int R, Products needed, DecayKind decay_kind> class PanelScan {
 public:
  using Column = Rows<S, R>;
  static constexpr int updates = 2, products = needed == Products::lookups_and_queries ? 4 : 2;
  static constexpr auto writes_after_decay = writes_of(decay_kind, PassWrites::decay_columns);
  static constexpr bool defers = true;

  static EIGEN_ALWAYS_INLINE void prefetch(const Prefetches<S>& prefetches, const Panel<S>& panel) {
    prefetches.rows.prefetch(panel.first, panel.rows);
    prefetches.columns.prefetch(panel.prefetch_first, panel.prefetch_count);
  }

  static EIGEN_ALWAYS_INLINE Vectors<S, products> factors(const Pair<S>& p) {
    const Vectors<S, 2> queries{{p.one.query}, {p.two.query}};
    const Vectors<S, 2> lookups{{p.one.lookup_key}, {p.two.lookup_key}};
    if constexpr (needed == Products::lookups_and_queries)
      return {queries, lookups};
    else if constexpr (needed == Products::removal)
      return {lookups.first, queries.second};
    else
      return needed == Products::queries ? queries : lookups;
  }
  static EIGEN_ALWAYS_INLINE const S* previous_products(const Pair<S>& p) {
    return p.previous_products;
  }

  static EIGEN_ALWAYS_INLINE void finish(const Pair<S>& p,
                                         const RegisterTuple<Column, products>& sums,
                                         Pending<S, R, 2>& pending, const Panel<S>& panel) {
    if constexpr (needed == Products::lookups_and_queries)
      finish(p, sums.first, sums.second, pending, panel.first, panel.rows);
    else if constexpr (needed == Products::removal)
      finish(p, {sums.second, sums.second}, {sums.first, sums.first}, pending, panel.first,
             panel.rows);
    else
      finish(p, sums, sums, pending, panel.first, panel.rows);
  }

 private:
  static constexpr bool looks_up = needed != Products::queries;
  static constexpr bool looks_up_twice = looks_up && needed != Products::removal;
  static constexpr bool reads = needed != Products::lookups;
  static constexpr bool reads_twice = reads && needed != Products::removal;

  static EIGEN_ALWAYS_INLINE void finish(const Pair<S>& p,
                                         const RegisterTuple<Column, 2>& query_sums,
                                         const RegisterTuple<Column, 2>& retrieved,
                                         Pending<S, R, 2>& pending, Index first, Index rows) {
    Column u1 = error_of<looks_up>(p.one, retrieved.first.only, first, rows);
    apply_write_strength(u1, p.one, first, rows);
    Column u2 = error_of<looks_up_twice>(p.two, retrieved.second.only, first, rows);
    if constexpr (looks_up_twice) u2.add(u1, -p.key_key);
    apply_write_strength(u2, p.two, first, rows);

    const RowDecay decay1 = row_decay(p.one, first, rows), decay2 = row_decay(p.two, first, rows);
    if constexpr (reads_twice) {
      Column y1 = query_sums.first.only;
      y1.scale(p.one.read_scale);
      decay1.apply(y1);
      y1.add(u1, p.one.key_query);
      if (p.one.output != nullptr) store_part(y1, p.one.output + first, 0, rows);
    }
    if constexpr (reads) {
      Column y2 = query_sums.second.only;
      y2.scale(p.two.read_scale);
      decay1.apply(y2);
      y2.add(u1, p.cross_key_query);
      decay2.apply(y2);
      y2.add(u2, p.two.key_query);
      if (p.two.output != nullptr) store_part(y2, p.two.output + first, 0, rows);
    }

    decay2.apply(u1);
    if constexpr (decay_kind == DecayKind::scalar) {
      u1.scale(p.one.write_scale);
      u2.scale(p.two.write_scale);
    }
    pending = {{{u1}, {u2}}, {{p.one.key}, {p.two.key}}, p.decays, p.decay};
    decay1.apply(pending.row_decays);
    decay2.apply(pending.row_decays);
  }

  // The decay of some rows of W, or nothing.
  struct NoDecay {
    EIGEN_ALWAYS_INLINE void apply(Column&) const {}
  };
  struct OneDecay {
    Column factor;
    EIGEN_ALWAYS_INLINE void apply(Column& x) const { x.scale(factor); }
  };
  static constexpr bool by_row = decay_kind == DecayKind::per_value_row;
  static_assert(!by_row || !looks_up, "fastweights: no look-ups with one decay per value row");
  using RowDecay = std::conditional_t<by_row, OneDecay, NoDecay>;
  static EIGEN_ALWAYS_INLINE RowDecay row_decay([[maybe_unused]] const typename Pair<S>::One& one,
                                                [[maybe_unused]] Index first,
                                                [[maybe_unused]] Index rows) {
    if constexpr (by_row)
      return {one.row_decays == nullptr ? Column::all(S(1))
                                        : load_part<Column>(one.row_decays + first, 0, rows)};
    else
      return {};
  }

  template <bool subtracts>
  static EIGEN_ALWAYS_INLINE Column error_of(const typename Pair<S>::One& one,
                                             [[maybe_unused]] const Column& retrieved, Index first,
                                             Index rows) {
    Column e = load_part<Column>(one.value + first, 0, rows);
    e.scale(one.value_scale);
    if constexpr (subtracts) e.add(retrieved, -one.retrieved_scale);
    return e;
  }

  static EIGEN_ALWAYS_INLINE void apply_write_strength(Column& e, const typename Pair<S>::One& one,
                                                       Index first, Index rows) {
    if (looks_up && one.error != nullptr) store_part(e, one.error + first, 0, rows);
    if (one.betas != nullptr)
      e.scale(load_part<Column>(one.betas + first, 0, rows));
    else
      e.scale(one.beta);
  }
};

/// PanelScan as run_pairs takes it.
template <Products products> struct PanelScanOf {
  template <class S, int R, bool, DecayKind decay_kind>
  using Panel = PanelScan<S, R, products, decay_kind>;
};

}  // namespace fw::detail
