#pragma once

#include <fastweights/kernels/scan/pair.hpp>
#include <fastweights/kernels/scan/pair_loop.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// One pair of tokens of a scan, for R packets of rows of W. `HasDeltaTerm`: whether a write
/// subtracts the retrieved value.
template <class S, int R, bool HasDeltaTerm, DecayKind decay_kind> class PanelScan {
 public:
  using Column = Rows<S, R>;
  static constexpr int updates = 2, products = HasDeltaTerm ? 4 : 2;
  static constexpr auto writes_after_decay = writes_of(decay_kind, PassWrites::decay_columns);

  static EIGEN_ALWAYS_INLINE void prefetch(const Prefetches<S>& prefetches, const Panel<S>& panel) {
    prefetches.rows.prefetch(panel.first, panel.rows);
    prefetches.columns.prefetch(panel.prefetch_first, panel.prefetch_count);
  }

  static EIGEN_ALWAYS_INLINE Vectors<S, products> factors(const Pair<S>& p) {
    const Vectors<S, 2> queries{{p.one.query}, {p.two.query}};
    if constexpr (HasDeltaTerm)
      return {queries, {{p.one.lookup_key}, {p.two.lookup_key}}};
    else
      return queries;
  }
  static EIGEN_ALWAYS_INLINE const S* previous_products(const Pair<S>& p) {
    return p.previous_products;
  }

  static EIGEN_ALWAYS_INLINE void finish(const Pair<S>& p, const Group<Column, products>& sums,
                                         Pending<S, R, 2>& pending, const Panel<S>& panel) {
    if constexpr (HasDeltaTerm)
      finish(p, sums.first, sums.second, pending, panel.first, panel.rows);
    else
      finish(p, sums, sums, pending, panel.first, panel.rows);
  }

 private:
  static EIGEN_ALWAYS_INLINE void finish(const Pair<S>& p, const Group<Column, 2>& query_sums,
                                         const Group<Column, 2>& retrieved,
                                         Pending<S, R, 2>& pending, Index first, Index rows) {
    Column u1 = error_of(p.one, retrieved.first.only, first, rows);
    apply_write_strength(u1, p.one, first, rows);
    Column u2 = error_of(p.two, retrieved.second.only, first, rows);
    if constexpr (HasDeltaTerm) u2.add(u1, -p.key_key);
    apply_write_strength(u2, p.two, first, rows);

    Column y1 = query_sums.first.only, y2 = query_sums.second.only;
    y1.scale(p.one.read_scale);
    y1.add(u1, p.one.key_query);
    store_part(y1, p.one.output + first, 0, rows);
    y2.scale(p.two.read_scale);
    y2.add(u1, p.cross_key_query);
    y2.add(u2, p.two.key_query);
    if (p.two.output != nullptr) store_part(y2, p.two.output + first, 0, rows);

    if constexpr (decay_kind != DecayKind::none) u1.scale(p.one.write_scale);
    if constexpr (decay_kind == DecayKind::scalar) u2.scale(p.two.write_scale);
    pending = {{{u1}, {u2}}, {{p.one.key}, {p.two.key}}, p.decays, p.decay};
  }

  static EIGEN_ALWAYS_INLINE Column error_of(const typename Pair<S>::One& one,
                                             const Column& retrieved, Index first, Index rows) {
    Column e = load_part<Column>(one.value + first, 0, rows);
    e.scale(one.value_scale);
    if constexpr (HasDeltaTerm) e.add(retrieved, -one.retrieved_scale);
    return e;
  }

  static EIGEN_ALWAYS_INLINE void apply_write_strength(Column& e, const typename Pair<S>::One& one,
                                                       Index first, Index rows) {
    if (HasDeltaTerm && one.error != nullptr) store_part(e, one.error + first, 0, rows);
    if (one.betas != nullptr)
      e.scale(load_part<Column>(one.betas + first, 0, rows));
    else
      e.scale(one.beta);
  }
};

}  // namespace fw::detail
