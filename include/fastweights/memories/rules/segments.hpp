#pragma once

#include <fastweights/core/state.hpp>
#include <fastweights/kernels/scan/segment.hpp>
#include <fastweights/math/products.hpp>
#include <fastweights/memories/rules/correction.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// A segment of corrections, W ← W A + B. It exists because each correction with one β is affine in
/// W. With one β per value row, every row of W would need an A of its own.
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

/// A segment of the writes of a rule without look-ups: W ← W diag(decay) + sum.
template <class S, int Dk, int Dv> struct SumSegment {
  PlainArray<S, 1, Dk> decay;
  PlainArray<S, Dv, Dk> sum;  ///< of the writes, each decayed by the later ones
  static constexpr auto names = fw::names("decay", "sum");

  static SumSegment empty(Index dk, Index dv) {
    return {PlainArray<S, 1, Dk>::Ones(1, dk), PlainArray<S, Dv, Dk>::Zero(dv, dk)};
  }
  template <class Lookup, class V, class Decay, class K>
  void add(const Lookup&, const V& value, const S& beta, const Decay& by, const K& key) {
    decay_all(by);
    sum.noalias() += (beta * value) * key.transpose();
  }
  void append(const SumSegment& later) {
    decay_all(later.decay.transpose());
    sum += later.sum;
  }
  template <class W> void apply(W& w) const {
    apply_decay(w, decay.transpose());
    w += sum;
  }

 private:
  template <class Decay> void decay_all(const Decay& by) {
    apply_decay(decay, by);
    apply_decay(sum, by);
  }
};

/// The base of a rule whose writes compose into a segment: all members of a Mergeable rule but
/// `extend`. Rule is the rule itself; its state has a matrix W.
template <class Rule, class SegmentType> class SegmentWrites {
 public:
  using Segment = SegmentType;
  Segment empty_segment() const {
    const auto W = rule().state_extents().W;
    return Segment::empty(W.width, W.rows);
  }
  // R is Rule. Rule is not complete when this class is instantiated, but is when R is used.
  template <class R = Rule>
  requires(KernelScalar<typename R::Scalar>&& requires(Segment& g, const R& m,
                                                       const WriteSequence<R>& inputs) {
    g.add_sequence(m, inputs);
  }) void extend_by_sequence(Segment& g, const WriteSequence<R>& inputs) const {
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
