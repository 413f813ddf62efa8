#pragma once

#include <fastweights/kernels/pair.hpp>
#include <fastweights/kernels/visits.hpp>

namespace fw::detail {
inline namespace FASTWEIGHTS_KERNELS {

/// What a scan does to some rows of W at a pair of tokens. `R` packets of rows; `Corrects`: whether
/// the rule looks up what a key retrieves.
template <class S, int R, bool Corrects, Fade fading> class PanelScan {
 public:
  using Column = Rows<S, R>;
  static constexpr int updates = 2, products = Corrects ? 4 : 2;
  static constexpr auto fading_writes = writes_of(fading, Writes::fade_columns);

  static EIGEN_ALWAYS_INLINE void ask(const AheadOf<S>& ahead, const Panel<S>& panel) {
    ahead.rows.ask(panel.first, panel.rows);
    ahead.columns.ask(panel.first_column, panel.columns);
  }

  static EIGEN_ALWAYS_INLINE Vectors<S, products> asked(const Pair<S>& p) {
    const Vectors<S, 2> queries{{p.one.asked}, {p.two.asked}};
    if constexpr (Corrects)
      return {queries, {{p.one.looked_up}, {p.two.looked_up}}};
    else
      return queries;
  }
  static EIGEN_ALWAYS_INLINE const S* carried(const Pair<S>& p) { return p.carried; }

  static EIGEN_ALWAYS_INLINE void answer(const Pair<S>& p, const Few<Column, products>& found,
                                         Pending<S, R, 2>& left, const Panel<S>& panel) {
    if constexpr (Corrects)
      answer(p, found.first, found.second, left, panel.first, panel.rows);
    else
      answer(p, found, found, left, panel.first, panel.rows);
  }

 private:
  static EIGEN_ALWAYS_INLINE void answer(const Pair<S>& p, const Few<Column, 2>& asked,
                                         const Few<Column, 2>& found, Pending<S, R, 2>& left,
                                         Index first, Index rows) {
    Column e1 = update_of(p.one, found.first.only, first, rows);
    strengthen(e1, p.one, first, rows);
    Column e2 = update_of(p.two, found.second.only, first, rows);
    if constexpr (Corrects) e2.add(e1, -p.earlier);
    strengthen(e2, p.two, first, rows);

    Column y1 = asked.first.only, y2 = asked.second.only;
    y1.scale(p.one.read);
    y1.add(e1, p.one.own);
    store_part(y1, p.one.output + first, 0, rows);
    y2.scale(p.two.read);
    y2.add(e1, p.cross);
    y2.add(e2, p.two.own);
    if (p.two.output != nullptr) store_part(y2, p.two.output + first, 0, rows);

    if constexpr (fading != Fade::none) e1.scale(p.one.written);
    if constexpr (fading == Fade::all) e2.scale(p.two.written);
    left = {{{e1}, {e2}}, {{p.one.key}, {p.two.key}}, p.fades, p.fade};
  }

  static EIGEN_ALWAYS_INLINE Column update_of(const typename Pair<S>::One& one, const Column& found,
                                              Index first, Index rows) {
    Column e = load_part<Column>(one.values + first, 0, rows);
    e.scale(one.value);
    if constexpr (Corrects) e.add(found, -one.retrieved);
    return e;
  }

  static EIGEN_ALWAYS_INLINE void strengthen(Column& e, const typename Pair<S>::One& one,
                                             Index first, Index rows) {
    if (Corrects && one.error != nullptr) store_part(e, one.error + first, 0, rows);
    if (one.betas != nullptr)
      e.scale(load_part<Column>(one.betas + first, 0, rows));
    else
      e.scale(one.beta);
  }
};

}  // namespace FASTWEIGHTS_KERNELS
}  // namespace fw::detail
