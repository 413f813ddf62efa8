#pragma once

#include <fastweights/kernels/pair.hpp>

namespace fw::detail {
inline namespace FASTWEIGHTS_KERNELS {

/// Takes some rows of W, a panel, through tokens two at a time. One pass over the panel writes what
/// the pair before has left to write and forms the products of this one: lanes run along the values
/// and a key's entries are broadcast, so nothing is summed across lanes, and W is loaded and stored
/// once for two tokens.
///
/// `R` packets of rows; `Corrects`: whether the rule looks up what a key retrieves.
template <class S, int R, Fade fading, bool Corrects> class PanelScan {
 public:
  /// W: R·lanes × columns, without gaps. `first`: the panel's first row in values and outputs,
  /// `rows`: how many of its rows are theirs.
  static EIGEN_DONT_INLINE void run(S* W, Index columns, const Pair<S>* pairs, Index count,
                                    Index first, Index rows) {
    Pending pending;
    pass<Writes::nothing>(W, columns, pairs[0], pending, first, rows);
    for (Index i = 1; i < count; ++i)
      if (fades(pending))
        pass<Writes::faded_update>(W, columns, pairs[i], pending, first, rows);
      else
        pass<Writes::update>(W, columns, pairs[i], pending, first, rows);
    if (fades(pending))
      write<Writes::faded_update>(W, columns, pending);
    else
      write<Writes::update>(W, columns, pending);
  }

 private:
  using Column = Rows<S, R>;
  // Two columns at a time where one has too few sums to hide the latency of a multiply-add.
  static constexpr bool by_two = R == 1 || !Corrects;

  // What is computed and not yet in W. Pointers are copied out of the pair: behind every store to W
  // the compiler would have to load them again.
  struct Pending {
    Column first, second;
    const S *by_first, *by_second, *fades;
    S fade;
  };

  static EIGEN_ALWAYS_INLINE bool fades(const Pending& pending) {
    if constexpr (fading == Fade::all) return pending.fade != S(1);
    return fading == Fade::columns;
  }

  // What a pass does with the update that is pending.
  enum class Writes { nothing, update, faded_update };

  template <Writes writes>
  static EIGEN_ALWAYS_INLINE Column updated(const S* W, Index j, const Pending& pending) {
    Column w = Column::load(W);
    if constexpr (writes == Writes::nothing) return w;
    if constexpr (writes == Writes::faded_update)
      w.scale(fading == Fade::columns ? pending.fades[j] : pending.fade);
    w.add(pending.first, pending.by_first[j]);
    w.add(pending.second, pending.by_second[j]);
    return w;
  }

  template <Writes writes>
  static EIGEN_ALWAYS_INLINE void write(S* W, Index columns, const Pending& pending) {
    for (Index j = 0; j < columns; ++j, W += Column::size) updated<writes>(W, j, pending).store(W);
  }

  // W times what the two tokens look up and ask.
  struct Products {
    Column key1, query1, key2, query2;
    static EIGEN_ALWAYS_INLINE Products zero() {
      const Column none = Column::all(S(0));
      return {none, none, none, none};
    }
    EIGEN_ALWAYS_INLINE void add(const Products& other) {
      if constexpr (Corrects) key1.add(other.key1), key2.add(other.key2);
      query1.add(other.query1), query2.add(other.query2);
    }
  };
  struct Factors {
    const S *key1, *query1, *key2, *query2;
  };

  template <Writes writes>
  static EIGEN_ALWAYS_INLINE void visit(S* W, Index j, const Factors& by, const Pending& pending,
                                        Products& sums) {
    const Column w = updated<writes>(W, j, pending);
    if constexpr (writes != Writes::nothing) w.store(W);
    if constexpr (Corrects) sums.key1.add(w, by.key1[j]), sums.key2.add(w, by.key2[j]);
    sums.query1.add(w, by.query1[j]), sums.query2.add(w, by.query2[j]);
  }

  template <Writes writes>
  static EIGEN_ALWAYS_INLINE void pass(S* W, Index columns, const Pair<S>& p, Pending& pending,
                                       Index first, Index rows) {
    const Factors by{p.one.looked_up, p.one.asked, p.two.looked_up, p.two.asked};
    Products sums = Products::zero(), others = sums;
    Index j = 0;
    if constexpr (by_two)
      for (; j + 2 <= columns; j += 2, W += 2 * Column::size) {
        visit<writes>(W, j, by, pending, sums);
        visit<writes>(W + Column::size, j + 1, by, pending, others);
      }
    for (; j < columns; ++j, W += Column::size) visit<writes>(W, j, by, pending, sums);
    if constexpr (by_two) sums.add(others);
    answer(p, sums, pending, first, rows);
  }

  static EIGEN_ALWAYS_INLINE Column update(const typename Pair<S>::One& one, const Column& found,
                                           Index first, Index rows) {
    Column e = load_part<Column>(one.values + first, 0, rows);
    e.scale(one.value);
    if constexpr (Corrects) e.add(found, -one.retrieved);
    return e;
  }

  static EIGEN_ALWAYS_INLINE void strengthen(Column& e, const typename Pair<S>::One& one,
                                             Index first, Index rows) {
    if (one.betas != nullptr)
      e.scale(load_part<Column>(one.betas + first, 0, rows));
    else
      e.scale(one.beta);
  }

  static EIGEN_ALWAYS_INLINE void answer(const Pair<S>& p, Products& sums, Pending& pending,
                                         Index first, Index rows) {
    Column e1 = update(p.one, sums.key1, first, rows);
    strengthen(e1, p.one, first, rows);
    Column e2 = update(p.two, sums.key2, first, rows);
    if constexpr (Corrects) e2.add(e1, -p.earlier);
    strengthen(e2, p.two, first, rows);

    sums.query1.scale(p.one.read);
    sums.query1.add(e1, p.one.own);
    store_part(sums.query1, p.one.output + first, 0, rows);
    sums.query2.scale(p.two.read);
    sums.query2.add(e1, p.cross);
    sums.query2.add(e2, p.two.own);
    if (p.two.output != nullptr) store_part(sums.query2, p.two.output + first, 0, rows);

    if constexpr (fading != Fade::none) e1.scale(p.one.written);
    if constexpr (fading == Fade::all) e2.scale(p.two.written);
    pending = {e1, e2, p.one.key, p.two.key, p.fades, p.fade};
  }
};

}  // namespace FASTWEIGHTS_KERNELS
}  // namespace fw::detail
