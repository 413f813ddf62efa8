#pragma once

#include <fastweights/core/scratch.hpp>
#include <fastweights/core/state.hpp>
#include <fastweights/kernels/rule.hpp>
#include <fastweights/kernels/scan/segment.hpp>
#include <fastweights/math/products.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// A segment of delta-rule writes, W ← W A + B. It exists because each write,
/// W ← W (I − β k kᵀ) + β v kᵀ, is affine in W.
template <class S, int Dk, int Dv> struct AffineSegment {
  PlainArray<S, Dk, Dk> A;
  PlainArray<S, Dv, Dk> B;
  static constexpr auto names = fw::names("A", "B");

  static AffineSegment empty(Index dk, Index dv) {
    return {PlainArray<S, Dk, Dk>::Identity(dk, dk), PlainArray<S, Dv, Dk>::Zero(dv, dk)};
  }

  /// Appends one write.
  template <class K, class V> void add(const K& key, const V& value, const S& beta) {
    scratch<S, Dk>(A.rows(), [&](auto& retrieved) {
      retrieved.noalias() = A * key;
      retrieved *= -beta;
      A.noalias() += retrieved * key.transpose();
    });
    scratch<S, Dv>(B.rows(), [&](auto& update) {
      update.noalias() = B * key;
      update = beta * (value - update);
      B.noalias() += update * key.transpose();
    });
  }
  /// Appends the writes of a sequence to the rule M, by its kernel.
  template <class M> void add_sequence(const WriteSequence<M>& inputs) {
    Tokens<S> tokens{columns_of(inputs.key), columns_of(inputs.value), {}, {}};
    if constexpr (M::decay_kind == DecayKind::per_channel) tokens.decays = columns_of(inputs.decay);
    extend_segment<M::decay_kind>(A, B, tokens, inputs.key.cols(), [&](Index t) {
      TokenCoefficients<S> c;
      c.beta = inputs.beta[t];
      if constexpr (M::decay_kind == DecayKind::scalar) c.decay = inputs.decay[t];
      return c;
    });
  }
  void append(const AffineSegment& later) {
    B = then(B, later);
    const auto first = A;
    set_product(A, first, later.A);
  }
  template <class W> void apply(W& w) const { w = then(w, *this); }

 private:
  template <class W> static W then(const W& w, const AffineSegment& segment) {
    W result = segment.B;
    add_product(result, w, segment.A);
    return result;
  }
};

}  // namespace fw::detail
