#pragma once

#include <fastweights/kernels/simd/register_products.hpp>

/// \file
/// One pass over a panel, which is some rows of a matrix W. It applies the pending rank-1 updates
/// of the previous tokens and computes the products with the vectors of the next tokens, so that W
/// is loaded and stored once for both. SIMD lanes run along the rows and entries of column vectors
/// are broadcast: no product with W is summed across lanes.

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// Vectors with an entry for every column.
template <class S, int N> using Vectors = RegisterTuple<const S*, N>;

template <class S, int R>
EIGEN_ALWAYS_INLINE void update(Rows<S, R>& w, const RegisterTuple<Rows<S, R>, 1>& u,
                                const Vectors<S, 1>& vectors, Index j) {
  w.add(u.only, vectors.only[j]);
}
template <class S, int R, int N>
EIGEN_ALWAYS_INLINE void update(Rows<S, R>& w, const RegisterTuple<Rows<S, R>, N>& u,
                                const Vectors<S, N>& vectors, Index j) {
  update<S, R>(w, u.first, vectors.first, j);
  update<S, R>(w, u.second, vectors.second, j);
}

template <class S, int R>
EIGEN_ALWAYS_INLINE void multiply(const Rows<S, R>& w, RegisterTuple<Rows<S, R>, 1>& sums,
                                  const Vectors<S, 1>& vectors, Index j) {
  sums.only.add(w, vectors.only[j]);
}
template <class S, int R, int N>
EIGEN_ALWAYS_INLINE void multiply(const Rows<S, R>& w, RegisterTuple<Rows<S, R>, N>& sums,
                                  const Vectors<S, N>& vectors, Index j) {
  multiply<S, R>(w, sums.first, vectors.first, j);
  multiply<S, R>(w, sums.second, vectors.second, j);
}

template <class S, int R> EIGEN_ALWAYS_INLINE void clear(RegisterTuple<Rows<S, R>, 1>& sums) {
  sums.only = Rows<S, R>::all(S(0));
}
template <class S, int R, int N>
EIGEN_ALWAYS_INLINE void clear(RegisterTuple<Rows<S, R>, N>& sums) {
  clear<S, R>(sums.first);
  clear<S, R>(sums.second);
}
template <class S, int R>
EIGEN_ALWAYS_INLINE void add(RegisterTuple<Rows<S, R>, 1>& sums,
                             const RegisterTuple<Rows<S, R>, 1>& others) {
  sums.only.add(others.only);
}
template <class S, int R, int N>
EIGEN_ALWAYS_INLINE void add(RegisterTuple<Rows<S, R>, N>& sums,
                             const RegisterTuple<Rows<S, R>, N>& others) {
  add<S, R>(sums.first, others.first);
  add<S, R>(sums.second, others.second);
}

/// Updates that are computed but not yet applied to W, and the decay of W before them.
template <class S, int R, int U> struct Pending {
  RegisterTuple<Rows<S, R>, U> updates;
  Vectors<S, U> vectors;
  const S* decays = nullptr;
  S decay = S(1);
  Rows<S, R> row_decays = Rows<S, R>::all(S(1));
};

/// Decay of W before a write: not at all, by one number, by d_k numbers, one per entry of a key
/// (`per_channel`, a column of W), or by d_v numbers, one per entry of a value (`per_value_row`,
/// only in scans without look-ups of SequenceCorrections: no rule has it as its decay_kind). With
/// `compensated` W does not decay, and its sums are compensated.
enum class DecayKind { none, scalar, per_channel, compensated, per_value_row };

/// Write of a pass to W: nothing, updates W += Σ u vᵀ, or updates after a decay W ← decay W,
/// W ← W diag(decays) or W ← diag(row_decays) W. `compensated` adds the updates to the rounding
/// errors of W, which follow W in memory, and carries the sum to W.
enum class PassWrites { nothing, updates, decay_all, decay_columns, decay_rows, compensated };

/// Write of the passes of a rule if the matrix decays or is compensated. `per_channel_writes` is
/// for DecayKind::per_channel.
constexpr PassWrites writes_of(DecayKind decay_kind, PassWrites per_channel_writes) {
  if (decay_kind == DecayKind::none) return PassWrites::updates;
  if (decay_kind == DecayKind::compensated) return PassWrites::compensated;
  if (decay_kind == DecayKind::per_value_row) return PassWrites::decay_rows;
  return decay_kind == DecayKind::scalar ? PassWrites::decay_all : per_channel_writes;
}
/// True if a pass does more than add these pending updates. `defers` is for decays per channel:
/// they are null if the matrix stays as it is.
template <DecayKind decay_kind, bool defers, class S, int R, int U>
EIGEN_ALWAYS_INLINE bool has_decay(const Pending<S, R, U>& pending) {
  if constexpr (decay_kind == DecayKind::scalar) return pending.decay != S(1);
  if constexpr (decay_kind == DecayKind::per_channel && defers) return pending.decays != nullptr;
  return decay_kind != DecayKind::none;
}

/// W is R·lanes × columns, contiguous; so are its rounding errors.
template <PassWrites writes, class S, int R, int U, int P> class MatrixPass {
 public:
  static EIGEN_ALWAYS_INLINE void run(S* W, Index columns, const Pending<S, R, U>& pending,
                                      const Vectors<S, P>& vectors,
                                      RegisterTuple<Rows<S, R>, P>& sums) {
    auto others = sums;
    Index j = 0;
    if constexpr (two_columns) {
      clear<S, R>(others);
      for (; j + 2 <= columns; j += 2, W += 2 * size) {
        visit(W, columns, j, pending, vectors, sums);
        visit(W + size, columns, j + 1, pending, vectors, others);
      }
    }
    for (; j < columns; ++j, W += size) visit(W, columns, j, pending, vectors, sums);
    if constexpr (two_columns) add<S, R>(sums, others);
  }

  /// Applies the pending updates without computing products.
  static EIGEN_ALWAYS_INLINE void write(S* W, Index columns, const Pending<S, R, U>& pending) {
    for (Index j = 0; j < columns; ++j, W += size) updated(W, columns, j, pending).store(W);
  }

 private:
  using Column = Rows<S, R>;
  static constexpr Index size = Column::size;
  // Two columns per iteration if one column has too few sums to hide the latency of a multiply-add,
  // and if all sums, the updates, a column and a factor fit in the registers.
  static constexpr bool two_columns =
      R * P < 8 && R * (U + 2 * P + 1) + 1 <= EIGEN_ARCH_DEFAULT_NUMBER_OF_REGISTERS;

  static EIGEN_ALWAYS_INLINE Column updated(S* W, [[maybe_unused]] Index columns, Index j,
                                            const Pending<S, R, U>& pending) {
    Column w = Column::load(W);
    if constexpr (writes == PassWrites::compensated) {
      S* const errors = W + columns * size;
      Column error = Column::load(errors);
      update<S, R>(error, pending.updates, pending.vectors, j);
      carry(w, error);
      error.store(errors);
      return w;
    }
    if constexpr (writes == PassWrites::decay_all) w.scale(pending.decay);
    if constexpr (writes == PassWrites::decay_columns) w.scale(pending.decays[j]);
    if constexpr (writes == PassWrites::decay_rows) w.scale(pending.row_decays);
    if constexpr (writes != PassWrites::nothing)
      update<S, R>(w, pending.updates, pending.vectors, j);
    return w;
  }

  static EIGEN_ALWAYS_INLINE void visit(S* W, Index columns, Index j,
                                        const Pending<S, R, U>& pending,
                                        const Vectors<S, P>& vectors,
                                        RegisterTuple<Column, P>& sums) {
    const Column w = updated(W, columns, j, pending);
    if constexpr (writes != PassWrites::nothing) w.store(W);
    multiply<S, R>(w, sums, vectors, j);
  }
};

}  // namespace fw::detail
