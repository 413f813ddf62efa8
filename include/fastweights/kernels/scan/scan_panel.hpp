#pragma once

#include <fastweights/kernels/scan/pair.hpp>
#include <fastweights/kernels/scan/pair_loop.hpp>

namespace fw::detail {
inline namespace FASTWEIGHTS_KERNELS {

/// What a scan does to some rows of W at a pair of tokens. `R` packets of rows; `HasDeltaTerm`:
/// whether the rule looks up what a key retrieves.
template <class S, int R, bool HasDeltaTerm, DecayKind decay_kind> class PanelScan {
 public:
  using Column = Rows<S, R>;
  static constexpr int updates = 2, products = HasDeltaTerm ? 4 : 2;
  static constexpr auto decay_writes = writes_of(decay_kind, Writes::fade_columns);

  static EIGEN_ALWAYS_INLINE void prefetch(const Prefetches<S>& prefetches, const Panel<S>& panel) {
    prefetches.rows.prefetch(panel.first, panel.rows);
    prefetches.columns.prefetch(panel.first_column, panel.columns);
  }

  static EIGEN_ALWAYS_INLINE Vectors<S, products> factors(const Pair<S>& p) {
    const Vectors<S, 2> queries{{p.one.query}, {p.two.query}};
    if constexpr (HasDeltaTerm)
      return {queries, {{p.one.lookup_key}, {p.two.lookup_key}}};
    else
      return queries;
  }
  static EIGEN_ALWAYS_INLINE const S* carried(const Pair<S>& p) { return p.carried; }

  static EIGEN_ALWAYS_INLINE void answer(const Pair<S>& p, const Group<Column, products>& found,
                                         Pending<S, R, 2>& left, const Panel<S>& panel) {
    if constexpr (HasDeltaTerm)
      answer(p, found.first, found.second, left, panel.first, panel.rows);
    else
      answer(p, found, found, left, panel.first, panel.rows);
  }

 private:
  static EIGEN_ALWAYS_INLINE void answer(const Pair<S>& p, const Group<Column, 2>& by_query,
                                         const Group<Column, 2>& found, Pending<S, R, 2>& left,
                                         Index first, Index rows) {
    Column e1 = update_of(p.one, found.first.only, first, rows);
    strengthen(e1, p.one, first, rows);
    Column e2 = update_of(p.two, found.second.only, first, rows);
    if constexpr (HasDeltaTerm) e2.add(e1, -p.earlier);
    strengthen(e2, p.two, first, rows);

    Column y1 = by_query.first.only, y2 = by_query.second.only;
    y1.scale(p.one.read);
    y1.add(e1, p.one.own);
    store_part(y1, p.one.output + first, 0, rows);
    y2.scale(p.two.read);
    y2.add(e1, p.cross);
    y2.add(e2, p.two.own);
    if (p.two.output != nullptr) store_part(y2, p.two.output + first, 0, rows);

    if constexpr (decay_kind != DecayKind::none) e1.scale(p.one.written);
    if constexpr (decay_kind == DecayKind::scalar) e2.scale(p.two.written);
    left = {{{e1}, {e2}}, {{p.one.key}, {p.two.key}}, p.fades, p.fade};
  }

  static EIGEN_ALWAYS_INLINE Column update_of(const typename Pair<S>::One& one, const Column& found,
                                              Index first, Index rows) {
    Column e = load_part<Column>(one.values + first, 0, rows);
    e.scale(one.value);
    if constexpr (HasDeltaTerm) e.add(found, -one.retrieved);
    return e;
  }

  static EIGEN_ALWAYS_INLINE void strengthen(Column& e, const typename Pair<S>::One& one,
                                             Index first, Index rows) {
    if (HasDeltaTerm && one.error != nullptr) store_part(e, one.error + first, 0, rows);
    if (one.betas != nullptr)
      e.scale(load_part<Column>(one.betas + first, 0, rows));
    else
      e.scale(one.beta);
  }
};

}  // namespace FASTWEIGHTS_KERNELS
}  // namespace fw::detail
