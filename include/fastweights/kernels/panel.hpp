#pragma once

#include <fastweights/kernels/pair.hpp>
#include <fastweights/kernels/panels.hpp>
#include <fastweights/kernels/pass.hpp>

namespace fw::detail {
inline namespace FASTWEIGHTS_KERNELS {

/// Takes a panel through pairs of tokens. `R` packets of rows; `Corrects`: whether the rule looks
/// up what a key retrieves.
template <class S, int R, Fade fading, bool Corrects> class PanelScan {
 public:
  using Column = Rows<S, R>;

  static EIGEN_DONT_INLINE void run(const Panel<S>& panel, Index columns, const Pair<S>* pairs,
                                    Index count) {
    S* const W = panel.data;
    const Index first = panel.first, rows = panel.rows;
    Pending<S, R, 2> pending;
    ask(pairs[0].ahead, panel);
    visit<Writes::nothing>(W, columns, pairs[0], pending, first, rows);
    for (Index i = 1; i < count; ++i) {
      ask(pairs[i].ahead, panel);
      if (fades<fading>(pending))
        visit<fading_writes>(W, columns, pairs[i], pending, first, rows);
      else
        visit<Writes::updates>(W, columns, pairs[i], pending, first, rows);
    }
    if (fades<fading>(pending))
      MatrixPass<fading_writes, S, R, 2, products>::write(W, columns, pending);
    else
      MatrixPass<Writes::updates, S, R, 2, products>::write(W, columns, pending);
  }

  /// Asks for the part that is the panel's of what comes later.
  static EIGEN_ALWAYS_INLINE void ask(const AheadOf<S>& ahead, const Panel<S>& panel) {
    ahead.rows.ask(panel.first, panel.rows);
    ahead.columns.ask(panel.first_column, panel.columns);
  }

  /// y and e of a pair, from what the matrix gave.
  static EIGEN_ALWAYS_INLINE void answer(const Pair<S>& p, const Few<Column, 2>& asked,
                                         const Few<Column, 2>& found, Pending<S, R, 2>& pending,
                                         Index first, Index rows) {
    Column e1 = update_of(p.one, found.first.only, first, rows);
    strengthen(e1, p.one, first, rows);
    Column e2 = update_of(p.two, found.second.only, first, rows);
    if constexpr (Corrects) e2.add(e1, -p.earlier);
    strengthen(e2, p.two, first, rows);

    Column y1 = asked.first.only, y2 = asked.second.only;
    y1.scale(p.one.read);
    y1.add(e1, p.one.own);
    if (p.one.output != nullptr) store_part(y1, p.one.output + first, 0, rows);
    y2.scale(p.two.read);
    y2.add(e1, p.cross);
    y2.add(e2, p.two.own);
    if (p.two.output != nullptr) store_part(y2, p.two.output + first, 0, rows);

    if constexpr (fading != Fade::none) e1.scale(p.one.written);
    if constexpr (fading == Fade::all) e2.scale(p.two.written);
    pending = {{{e1}, {e2}}, {{p.one.key}, {p.two.key}}, p.fades, p.fade};
  }

 private:
  static constexpr int products = Corrects ? 4 : 2;
  static constexpr auto fading_writes = writes_of(fading, Writes::fade_columns);

  // Pointers are copied out of the pair: behind every store to W the compiler would have to load
  // them again.
  template <Writes writes>
  static EIGEN_ALWAYS_INLINE void visit(S* W, Index columns, const Pair<S>& p,
                                        Pending<S, R, 2>& pending, Index first, Index rows) {
    const Vectors<S, 2> asked{{p.one.asked}, {p.two.asked}};
    const Vectors<S, 2> keys{{p.one.looked_up}, {p.two.looked_up}};
    Few<Column, products> sums;
    clear<S, R>(sums);
    if constexpr (Corrects) {
      MatrixPass<writes, S, R, 2, 4>::run(W, columns, pending, {asked, keys}, sums);
      answer(p, sums.first, sums.second, pending, first, rows);
    } else {
      MatrixPass<writes, S, R, 2, 2>::run(W, columns, pending, asked, sums);
      answer(p, sums, sums, pending, first, rows);
    }
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
