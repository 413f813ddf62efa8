#pragma once

#include <fastweights/core/state.hpp>
#include <fastweights/kernels/scan/segment.hpp>
#include <fastweights/math/products.hpp>
#include <fastweights/memories/rules/correction.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// A segment of corrections, W ← W A + B. It exists because each correction is affine in W.
template <class S, int Dk, int Dv> struct AffineSegment {
  PlainArray<S, Dk, Dk> A;
  PlainArray<S, Dv, Dk> B;
  static constexpr auto names = fw::names("A", "B");

  static AffineSegment empty(Index dk, Index dv) {
    return {PlainArray<S, Dk, Dk>::Identity(dk, dk), PlainArray<S, Dv, Dk>::Zero(dv, dk)};
  }

  /// Appends a correction (see correction.hpp); β is one number.
  template <class Lookup, class V, class Decay, class K>
  void add(const Lookup& lookup, const V& value, const S& beta, const Decay& decay, const K& key) {
    detail::correct<Dk>(A, lookup, PlainArray<S, Dk, 1>::Zero(A.rows()), beta, decay, key);
    detail::correct<Dv>(B, lookup, value, beta, decay, key);
  }
  /// Appends the writes of a sequence to the rule, by its kernel.
  template <class M> void add_sequence(const M& m, const WriteSequence<M>& inputs) {
    extend_segment(m, A, B, inputs);
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
