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

/// The base of a rule whose writes are affine in W. It has all members of a Mergeable rule but
/// `extend`. Rule is the rule itself.
template <class Rule, class S, int Dk, int Dv> class AffineWrites {
 public:
  using Segment = AffineSegment<S, Dk, Dv>;
  Segment empty_segment() const {
    const auto W = rule().state_extents().W;
    return Segment::empty(W.width, W.rows);
  }
  // R is Rule. Rule is not complete when this class is instantiated, but is when R is used.
  template <class R = Rule>
  void extend_by_sequence(Segment& g,
                          const WriteSequence<R>& inputs) const requires KernelScalar<S> {
    g.add_sequence(rule(), inputs);
  }
  void merge(Segment& g, const Segment& later) const {
    if (&g == &later) return merge(g, Segment(later));
    g.append(later);
  }
  template <class R = Rule> void apply(const Segment& g, StateOf<R>& s) const { g.apply(s.W); }

 private:
  const Rule& rule() const { return static_cast<const Rule&>(*this); }
};

}  // namespace fw::detail
