#pragma once

#include <fastweights/kernels/backward/pairs/pair.hpp>
#include <fastweights/kernels/scan/matrix_pass.hpp>
#include <fastweights/math/products.hpp>

/// \file
/// Decays in the backward passes: sets the decays of pairs, in the order of the pass.

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// No decay.
template <class S, DecayKind> class PairDecays {
 public:
  static constexpr Index batch = 32;  // pairs at a time

  PairDecays(const BackwardTokens<S>&, Index) {}
  void set_decays(BackwardPair<S>&, Index) {}
  void decay_vectors(BackwardPair<S>&, Index) {}
  S divisor() const { return S(1); }
};

/// One decay per token. The stored matrix is the matrix divided by `divisor()`.
template <class S> class PairDecays<S, DecayKind::scalar> {
 public:
  static constexpr Index batch = 32;

  PairDecays(const BackwardTokens<S>& tokens, Index) : tokens_(tokens) {}

  /// The decays of a pair whose first token is `t`.
  void set_decays(BackwardPair<S>& p, Index t) {
    p.one.decay = t == 0 ? S(1) : *tokens_.decays(t);
    p.two.decay = p.single ? S(1) : *tokens_.decays(t + 1);
    p.divisor = divisor();
    p.decay = deferred_.decay(p.one.decay * p.two.decay);
    p.inverse_divisor = S(1) / divisor();
    p.one.write_scale = p.one.decay * p.inverse_divisor;
    p.two.write_scale = p.two.decay * p.one.write_scale;
  }
  void decay_vectors(BackwardPair<S>&, Index) {}
  /// The matrix is the stored matrix times this.
  S divisor() const { return deferred_.divisor(); }

 private:
  const BackwardTokens<S>& tokens_;
  DeferredDecay<S> deferred_;
};

/// One decay per column. Vectors that are multiplied by the matrix before its decay include the
/// decays.
template <class S> class PairDecays<S, DecayKind::per_channel> {
 public:
  static constexpr Index batch = 16;  // so that the decayed vectors stay in the cache

  PairDecays(const BackwardTokens<S>& tokens, Index columns)
      : tokens_(tokens),
        columns_(columns),
        buffer_(thread_buffer<S, PairDecays>((batch * vectors + 1) * columns)) {
    vector(batch * vectors).setOnes();
  }

  void set_decays(BackwardPair<S>& p, Index t) {
    p.one.decays = t == 0 ? ones() : tokens_.decays(t);
    p.two.decays = p.single ? ones() : tokens_.decays(t + 1);
  }
  void decay_vectors(BackwardPair<S>& p, Index i) {
    Index to = i * vectors;
    p.lookup_key = product(to++, p.two.decays, p.one.k);
    p.decays = product(to++, p.one.decays, p.two.decays);
    p.one.k_before = product(to++, p.one.decays, p.one.k);
    p.one.q_before = product(to++, p.one.decays, p.one.q);
    p.two.k_before = product(to++, p.decays, p.two.k);
    p.two.q_before = product(to++, p.decays, p.two.q);
  }
  S divisor() const { return S(1); }

 private:
  using Vector = Eigen::Map<Eigen::Array<S, Eigen::Dynamic, 1>>;
  using Given = Eigen::Map<const Eigen::Array<S, Eigen::Dynamic, 1>>;
  static constexpr Index vectors = 6;

  Vector vector(Index i) { return {buffer_ + i * columns_, columns_}; }
  const S* ones() { return vector(batch * vectors).data(); }
  const S* product(Index to, const S* a, const S* b) {
    vector(to) = Given(a, columns_) * Given(b, columns_);
    return vector(to).data();
  }

  const BackwardTokens<S>& tokens_;
  Index columns_;
  S* buffer_;
};

/// The decays of a pair for some rows of a transposed matrix:
/// - scale_products(x): x is a product with the stored matrix
/// - decay_one(x), decay_two(x): x decays with the first or the second token
/// - scale_update(x): x is an update of the stored matrix in the forward pass
/// - scale_backward_updates(x1, x2): x1 and x2 are updates of both tokens in a backward pass; x1
///   decays with the first token, x2 with both
/// - set_pending_decay(pending): sets the decay of the pending updates
template <class Column, DecayKind> struct RowDecays {
  template <class S> EIGEN_ALWAYS_INLINE RowDecays(const BackwardPair<S>&, Index, Index) {}
  EIGEN_ALWAYS_INLINE void scale_products(Column&) const {}
  EIGEN_ALWAYS_INLINE void decay_one(Column&) const {}
  EIGEN_ALWAYS_INLINE void decay_two(Column&) const {}
  EIGEN_ALWAYS_INLINE void scale_update(Column&) const {}
  EIGEN_ALWAYS_INLINE void scale_backward_updates(Column&, Column&) const {}
  template <class P> EIGEN_ALWAYS_INLINE void set_pending_decay(P&) const {}
};
template <class S, int R> struct RowDecays<Rows<S, R>, DecayKind::scalar> {
  using Column = Rows<S, R>;
  const BackwardPair<S>& pair;

  EIGEN_ALWAYS_INLINE RowDecays(const BackwardPair<S>& p, Index, Index) : pair(p) {}
  EIGEN_ALWAYS_INLINE void scale_products(Column& x) const { x.scale(pair.divisor); }
  EIGEN_ALWAYS_INLINE void decay_one(Column& x) const { x.scale(pair.one.decay); }
  EIGEN_ALWAYS_INLINE void decay_two(Column& x) const { x.scale(pair.two.decay); }
  EIGEN_ALWAYS_INLINE void scale_update(Column& x) const { x.scale(pair.inverse_divisor); }
  EIGEN_ALWAYS_INLINE void scale_backward_updates(Column& x1, Column& x2) const {
    x1.scale(pair.one.write_scale);
    x2.scale(pair.two.write_scale);
  }
  template <class P> EIGEN_ALWAYS_INLINE void set_pending_decay(P& pending) const {
    pending.decay = pair.decay;
  }
};
template <class Column> struct RowDecays<Column, DecayKind::per_channel> {
  Column one, two;

  template <class S>
  EIGEN_ALWAYS_INLINE RowDecays(const BackwardPair<S>& p, Index first, Index rows)
      : one(load_part<Column>(p.one.decays + first, 0, rows)),
        two(load_part<Column>(p.two.decays + first, 0, rows)) {}
  EIGEN_ALWAYS_INLINE void scale_products(Column&) const {}
  EIGEN_ALWAYS_INLINE void decay_one(Column& x) const { x.scale(one); }
  EIGEN_ALWAYS_INLINE void decay_two(Column& x) const { x.scale(two); }
  EIGEN_ALWAYS_INLINE void scale_update(Column&) const {}
  EIGEN_ALWAYS_INLINE void scale_backward_updates(Column& x1, Column& x2) const {
    decay_one(x1);
    decay_one(x2);
    decay_two(x2);
  }
  template <class P> EIGEN_ALWAYS_INLINE void set_pending_decay(P& pending) const {
    pending.row_decays = two;
    decay_one(pending.row_decays);
  }
};

}  // namespace fw::detail
