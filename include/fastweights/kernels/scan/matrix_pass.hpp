#pragma once

#include <fastweights/kernels/simd/packet.hpp>

/// \file
/// One pass over a panel, some rows of a matrix W: takes in the rank-1 updates that the tokens
/// before have left to write and forms the products with the vectors of the next tokens, so that W
/// is loaded and stored once for all of them. Lanes run along the rows and what belongs to a column
/// is broadcast: nothing is summed across lanes.

namespace fw::detail {
inline namespace FASTWEIGHTS_KERNELS {

/// N things, a power of 2, as halves of halves: compilers keep them in registers, which they do not
/// always do with arrays.
template <class T, int N> struct Group { Group<T, N / 2> first, second; };
template <class T> struct Group<T, 1> { T only; };

/// Vectors with an entry for every column.
template <class S, int N> using Vectors = Group<const S*, N>;

template <class S, int R>
EIGEN_ALWAYS_INLINE void update(Rows<S, R>& w, const Group<Rows<S, R>, 1>& e,
                                const Vectors<S, 1>& by, Index j) {
  w.add(e.only, by.only[j]);
}
template <class S, int R, int N>
EIGEN_ALWAYS_INLINE void update(Rows<S, R>& w, const Group<Rows<S, R>, N>& e,
                                const Vectors<S, N>& by, Index j) {
  update<S, R>(w, e.first, by.first, j);
  update<S, R>(w, e.second, by.second, j);
}

template <class S, int R>
EIGEN_ALWAYS_INLINE void multiply(const Rows<S, R>& w, Group<Rows<S, R>, 1>& sums,
                                  const Vectors<S, 1>& by, Index j) {
  sums.only.add(w, by.only[j]);
}
template <class S, int R, int N>
EIGEN_ALWAYS_INLINE void multiply(const Rows<S, R>& w, Group<Rows<S, R>, N>& sums,
                                  const Vectors<S, N>& by, Index j) {
  multiply<S, R>(w, sums.first, by.first, j);
  multiply<S, R>(w, sums.second, by.second, j);
}

template <class S, int R> EIGEN_ALWAYS_INLINE void clear(Group<Rows<S, R>, 1>& sums) {
  sums.only = Rows<S, R>::all(S(0));
}
template <class S, int R, int N> EIGEN_ALWAYS_INLINE void clear(Group<Rows<S, R>, N>& sums) {
  clear<S, R>(sums.first);
  clear<S, R>(sums.second);
}
template <class S, int R>
EIGEN_ALWAYS_INLINE void add(Group<Rows<S, R>, 1>& sums, const Group<Rows<S, R>, 1>& others) {
  sums.only.add(others.only);
}
template <class S, int R, int N>
EIGEN_ALWAYS_INLINE void add(Group<Rows<S, R>, N>& sums, const Group<Rows<S, R>, N>& others) {
  add<S, R>(sums.first, others.first);
  add<S, R>(sums.second, others.second);
}

/// What is computed and not yet in W, whose columns fade before.
template <class S, int R, int U> struct Pending {
  Group<Rows<S, R>, U> updates;
  Vectors<S, U> by;
  const S* fades = nullptr;
  S fade = S(1);
  Rows<S, R> row_fades = Rows<S, R>::all(S(1));
};

/// How a rule decays W before a write: not at all, by one number, or by one number a key row
/// (a column of W).
enum class DecayKind { none, scalar, per_key };

/// What a pass does to W: nothing, W += Σ e byᵀ, or that after W ← fade W, W ← W diag(fades) or
/// W ← diag(row_fades) W.
enum class Writes { nothing, updates, fade_all, fade_columns, fade_rows };

/// What the passes of a rule write when they let the past fade.
constexpr Writes writes_of(DecayKind decay_kind, Writes by_itself) {
  if (decay_kind == DecayKind::none) return Writes::updates;
  return decay_kind == DecayKind::scalar ? Writes::fade_all : by_itself;
}
/// Whether they do so now.
template <DecayKind decay_kind, class S, int R, int U>
EIGEN_ALWAYS_INLINE bool fades(const Pending<S, R, U>& pending) {
  if constexpr (decay_kind == DecayKind::scalar) return pending.fade != S(1);
  return decay_kind == DecayKind::per_key;
}

/// W is R·lanes × columns without gaps.
template <Writes writes, class S, int R, int U, int P> class MatrixPass {
 public:
  static EIGEN_ALWAYS_INLINE void run(S* W, Index columns, const Pending<S, R, U>& pending,
                                      const Vectors<S, P>& by, Group<Rows<S, R>, P>& sums) {
    auto others = sums;
    Index j = 0;
    if constexpr (by_two) {
      clear<S, R>(others);
      for (; j + 2 <= columns; j += 2, W += 2 * size) {
        visit(W, j, pending, by, sums);
        visit(W + size, j + 1, pending, by, others);
      }
    }
    for (; j < columns; ++j, W += size) visit(W, j, pending, by, sums);
    if constexpr (by_two) add<S, R>(sums, others);
  }

  /// The updates alone.
  static EIGEN_ALWAYS_INLINE void write(S* W, Index columns, const Pending<S, R, U>& pending) {
    for (Index j = 0; j < columns; ++j, W += size) updated(W, j, pending).store(W);
  }

 private:
  using Column = Rows<S, R>;
  static constexpr Index size = Column::size;
  // Two columns at a time where one has too few sums to hide the latency of a multiply-add, and
  // where there are registers for all of them, the updates, a column and a factor.
  static constexpr bool by_two =
      R * P < 8 && R * (U + 2 * P + 1) + 1 <= EIGEN_ARCH_DEFAULT_NUMBER_OF_REGISTERS;

  static EIGEN_ALWAYS_INLINE Column updated(const S* W, Index j, const Pending<S, R, U>& pending) {
    Column w = Column::load(W);
    if constexpr (writes == Writes::fade_all) w.scale(pending.fade);
    if constexpr (writes == Writes::fade_columns) w.scale(pending.fades[j]);
    if constexpr (writes == Writes::fade_rows) w.scale(pending.row_fades);
    if constexpr (writes != Writes::nothing) update<S, R>(w, pending.updates, pending.by, j);
    return w;
  }

  static EIGEN_ALWAYS_INLINE void visit(S* W, Index j, const Pending<S, R, U>& pending,
                                        const Vectors<S, P>& by, Group<Column, P>& sums) {
    const Column w = updated(W, j, pending);
    if constexpr (writes != Writes::nothing) w.store(W);
    multiply<S, R>(w, sums, by, j);
  }
};

}  // namespace FASTWEIGHTS_KERNELS
}  // namespace fw::detail
