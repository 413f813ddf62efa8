#pragma once

#include <fastweights/core/products.hpp>
#include <fastweights/kernels/backward/pair.hpp>
#include <fastweights/kernels/scan/matrix_pass.hpp>

/// \file
/// What makes the past fade in a backward pass: gives pairs their decays, in the order in which the
/// pass takes them.

namespace fw::detail {
inline namespace FASTWEIGHTS_KERNELS {

/// Nothing does.
template <class S, DecayKind> class PairFades {
 public:
  static constexpr Index most = 32;  // pairs at a time

  PairFades(const BackwardTokens<S>&, Index) {}
  void spread(BackwardPair<S>&, Index) {}
  void multiply(BackwardPair<S>&, Index) {}
  S past() const { return S(1); }
};

/// All of the matrix alike: it is kept as it is over `past`, so that numbers fade and not the
/// matrix, until `past` gets so small that the matrix has to be scaled after all.
template <class S> class PairFades<S, DecayKind::scalar> {
 public:
  static constexpr Index most = 32;

  PairFades(const BackwardTokens<S>& tokens, Index) : tokens_(tokens) {}

  /// The decays of a pair whose first token is `t`.
  void spread(BackwardPair<S>& p, Index t) {
    p.one.decay = t == 0 ? S(1) : *tokens_.decays(t);
    p.two.decay = p.lonely ? S(1) : *tokens_.decays(t + 1);
    const S after = past_ * p.one.decay * p.two.decay;
    const bool kept = is_kept(after);
    p.past = past_;
    p.fade = kept ? S(1) : after;
    past_ = kept ? after : S(1);
    p.over = S(1) / past_;
    p.one.written = p.one.decay * p.over;
    p.two.written = p.two.decay * p.one.written;
  }
  void multiply(BackwardPair<S>&, Index) {}
  /// What the matrix is to be multiplied by in the end.
  S past() const { return past_; }

 private:
  const BackwardTokens<S>& tokens_;
  S past_ = S(1);
};

/// Every column by itself: what meets the matrix before it fades has the decays multiplied in.
template <class S> class PairFades<S, DecayKind::per_key> {
 public:
  static constexpr Index most = 16;  // what is made for them is to stay near

  PairFades(const BackwardTokens<S>& tokens, Index columns)
      : tokens_(tokens),
        columns_(columns),
        buffer_(thread_buffer<S, PairFades>((most * vectors + 1) * columns)) {
    vector(most * vectors).setOnes();
  }

  void spread(BackwardPair<S>& p, Index t) {
    p.one.decays = t == 0 ? ones() : tokens_.decays(t);
    p.two.decays = p.lonely ? ones() : tokens_.decays(t + 1);
  }
  void multiply(BackwardPair<S>& p, Index i) {
    Index to = i * vectors;
    p.lookup_key = product(to++, p.two.decays, p.one.k);
    p.fades = product(to++, p.one.decays, p.two.decays);
    p.one.k_before = product(to++, p.one.decays, p.one.k);
    p.one.q_before = product(to++, p.one.decays, p.one.q);
    p.two.k_before = product(to++, p.fades, p.two.k);
    p.two.q_before = product(to++, p.fades, p.two.q);
  }
  S past() const { return S(1); }

 private:
  using Vector = Eigen::Map<Eigen::Array<S, Eigen::Dynamic, 1>>;
  using Given = Eigen::Map<const Eigen::Array<S, Eigen::Dynamic, 1>>;
  static constexpr Index vectors = 6;

  Vector vector(Index i) { return {buffer_ + i * columns_, columns_}; }
  const S* ones() { return vector(most * vectors).data(); }
  const S* product(Index to, const S* a, const S* b) {
    vector(to) = Given(a, columns_) * Given(b, columns_);
    return vector(to).data();
  }

  const BackwardTokens<S>& tokens_;
  Index columns_;
  S* buffer_;
};

/// Some rows of the decays of a pair, in a matrix that has been transposed, as panels apply them:
/// to what the matrix gave, what fades with the first token or with the second, what goes into the
/// matrix, and what both tokens put into one that is gone through backwards: that fades with the
/// first token, and what the second puts in with both.
template <class Column, DecayKind> struct RowFades {
  template <class S> EIGEN_ALWAYS_INLINE RowFades(const BackwardPair<S>&, Index, Index) {}
  EIGEN_ALWAYS_INLINE void found(Column&) const {}
  EIGEN_ALWAYS_INLINE void by_one(Column&) const {}
  EIGEN_ALWAYS_INLINE void by_two(Column&) const {}
  EIGEN_ALWAYS_INLINE void written(Column&) const {}
  EIGEN_ALWAYS_INLINE void written_back(Column&, Column&) const {}
  template <class P> EIGEN_ALWAYS_INLINE void into(P&) const {}
};
template <class S, int R> struct RowFades<Rows<S, R>, DecayKind::scalar> {
  using Column = Rows<S, R>;
  const BackwardPair<S>& pair;

  EIGEN_ALWAYS_INLINE RowFades(const BackwardPair<S>& p, Index, Index) : pair(p) {}
  EIGEN_ALWAYS_INLINE void found(Column& x) const { x.scale(pair.past); }
  EIGEN_ALWAYS_INLINE void by_one(Column& x) const { x.scale(pair.one.decay); }
  EIGEN_ALWAYS_INLINE void by_two(Column& x) const { x.scale(pair.two.decay); }
  EIGEN_ALWAYS_INLINE void written(Column& x) const { x.scale(pair.over); }
  EIGEN_ALWAYS_INLINE void written_back(Column& x1, Column& x2) const {
    x1.scale(pair.one.written);
    x2.scale(pair.two.written);
  }
  template <class P> EIGEN_ALWAYS_INLINE void into(P& pending) const { pending.fade = pair.fade; }
};
template <class Column> struct RowFades<Column, DecayKind::per_key> {
  Column one, two;

  template <class S>
  EIGEN_ALWAYS_INLINE RowFades(const BackwardPair<S>& p, Index first, Index rows)
      : one(load_part<Column>(p.one.decays + first, 0, rows)),
        two(load_part<Column>(p.two.decays + first, 0, rows)) {}
  EIGEN_ALWAYS_INLINE void found(Column&) const {}
  EIGEN_ALWAYS_INLINE void by_one(Column& x) const { x.scale(one); }
  EIGEN_ALWAYS_INLINE void by_two(Column& x) const { x.scale(two); }
  EIGEN_ALWAYS_INLINE void written(Column&) const {}
  EIGEN_ALWAYS_INLINE void written_back(Column& x1, Column& x2) const {
    by_one(x1);
    by_one(x2);
    by_two(x2);
  }
  template <class P> EIGEN_ALWAYS_INLINE void into(P& pending) const {
    pending.row_fades = two;
    by_one(pending.row_fades);
  }
};

}  // namespace FASTWEIGHTS_KERNELS
}  // namespace fw::detail
