#pragma once

#include <fastweights/core/signatures.hpp>
#include <fastweights/core/state.hpp>
#include <fastweights/kernels/decode/read_product.hpp>
#include <fastweights/memories/rules/correction_chunk.hpp>
#include <fastweights/memories/rules/normaliser.hpp>
#include <fastweights/memories/rules/segments.hpp>
#include <fastweights/memories/rules/write_gradient.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// The base of a rule whose state is one matrix W, d_v×d_k, and whose read is y = W q: sizes, state
/// and read with its gradient. `Rule` is the rule itself, which adds its write; `Inputs` is its
/// signature, derived from QueryOutput.
///
///     struct MyRule : MatrixRule<MyRule, float, KeyValueBeta<Dynamic, Dynamic>> { … };
///
/// A rule that tells the kernels its corrections (kernels/rule.hpp) also gets from them
///
/// - the gradient of its write, if it has `correction_vjp` or `plain_coefficients`
///   (kernels/backward/correction_gradient.hpp) and its decay is the token's `decay` or a constant;
/// - the chunkwise form, if W does not decay or by one number, and is read after the write;
/// - segments, if a correction has one β, not one per value row. `Segment` is detail::SumSegment
///   for a rule without look-ups;
/// - with `static constexpr bool key_bounds_strength = true`, the condition of stability
///   0 ≤ β‖k‖² ≤ 2 for every correction that looks up its own key.
///
/// A member of the rule itself goes first. A rule with another State has none of these.
template <class Rule, class S, class Inputs,
          class Segment = detail::AffineSegment<S, Inputs::key_rows, Inputs::value_rows>>
class MatrixRule : public detail::SegmentWrites<Rule, Segment> {
  using Written = typename Inputs::template Write<Token<const S>>;

 public:
  using Scalar = S;
  using Signature = Inputs;

  /// W, d_v×d_k.
  template <class C> struct State {
    mat<C, Signature::value_rows, Signature::key_rows> W;
    static constexpr auto names = fw::names("W");
  };
  using OwnedState = State<Owned<S>>;

 private:
  // R is Rule, which is complete when this is used.
  template <class R> static constexpr bool keeps_state() {
    return std::is_same_v<StateOf<R>, OwnedState>;
  }

 public:
  /// Throws std::invalid_argument when a size does not fit.
  explicit MatrixRule(Sizes<Signature::key_rows, Signature::value_rows> sizes = {})
      : signature_{{sizes.key_size, sizes.value_size}} {
    signature_.check(Rule::name);
  }

  /// The sizes of inputs and outputs.
  Signature signature() const { return signature_; }
  /// The size of W.
  State<Extents> state_extents() const { return {{dv(), dk()}}; }

  /// y = W q.
  void read(const OwnedState& s, const typename Signature::template Read<Token<const S>>& t,
            typename Signature::template Out<Token<S>> y) const {
    detail::set_product_with_vector(y.output, s.W, t.query);
  }
  /// Adds dy qᵀ to dW, and Wᵀ dy to dq.
  void read_vjp(const OwnedState& s, const typename Signature::template Read<Token<const S>>& t,
                const typename Signature::template Out<Token<const S>>& dy, OwnedState& ds,
                typename Signature::template Read<Token<S>> dt) const {
    detail::product_vjp(s.W, t.query, dy.output, ds.W, dt.query);
  }

  /// The gradient of the write, from those of the corrections.
  void write_vjp(const OwnedState& s, const Written& t, OwnedState& ds,
                 typename Inputs::template Write<Token<S>> dt) const
      requires(keeps_state<Rule>() && detail::has_correction_gradients<Rule>()) {
    detail::write_gradient(rule(), s, t, ds, dt);
  }
  /// Several tokens in matrix products (detail::CorrectionChunk).
  void chunk(OwnedState& s, const typename Inputs::template Write<Sequence<const S>>& inputs,
             const typename Inputs::template Read<Sequence<const S>>& queries,
             typename Inputs::template Out<Sequence<S>> out) const
      requires(keeps_state<Rule>() && detail::has_correction_chunk<Rule>()) {
    const Index tokens = queries.query.cols();
    detail::CorrectionChunk<Rule>(rule(), s, inputs, tokens).run(queries.query, out.output);
  }
  /// Appends a write to a segment.
  void extend(Segment& g, const Written& t) const
      requires(keeps_state<Rule>() && detail::has_correction_segments<Rule>()) {
    detail::extend_by_corrections(rule(), g, t);
  }
  /// The condition that makes a write unstable.
  Violation violation(const Written& t) const
      requires(keeps_state<Rule>() && key_bounds_strength<Rule>() &&
               detail::says_corrections<Rule>()) {
    return detail::violation_of_corrections(rule(), t);
  }

 protected:
  Index dv() const { return signature_.dv; }
  Index dk() const { return signature_.dk; }

 private:
  const Rule& rule() const { return static_cast<const Rule&>(*this); }

  Signature signature_;
};

}  // namespace fw
