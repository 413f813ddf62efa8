#pragma once

#include <concepts>
#include <fastweights/core/carriers.hpp>
#include <string_view>

/// \file
/// The memory concepts. A memory is hyperparameters plus two actions on a separate State, `write`
/// and `read`; everything else a rule may add is a refinement, and what it leaves out is filled in
/// by the generic algorithms.
///
///     template <class S> struct Rule {
///       using Scalar = S;
///       using Signature = ...;                    // Write, Read, Out and their extents
///       template <class C> struct State {...};    // what it keeps
///       static constexpr std::string_view name;   // for errors and tables
///       Signature signature() const;
///       State<Extents> state_extents() const;
///       void write(StateOf<Rule>&, WriteToken<Rule>) const;
///       void read(const StateOf<Rule>&, ReadToken<Rule>, OutToken<Rule>) const;
///     };
///
/// The members are bare: they check nothing. fw::write, fw::read, fw::step, fw::scan and
/// fw::backward are the public boundary, where sizes are checked before anything is changed.

namespace fw {

template <class M> using StateOf = typename M::template State<Owned<typename M::Scalar>>;

template <class M>
using WriteToken = typename M::Signature::template Write<Token<const typename M::Scalar>>;
template <class M>
using ReadToken = typename M::Signature::template Read<Token<const typename M::Scalar>>;
template <class M> using OutToken = typename M::Signature::template Out<Token<typename M::Scalar>>;

template <class M>
using WriteSequence = typename M::Signature::template Write<Sequence<const typename M::Scalar>>;
template <class M>
using ReadSequence = typename M::Signature::template Read<Sequence<const typename M::Scalar>>;
template <class M>
using OutSequence = typename M::Signature::template Out<Sequence<typename M::Scalar>>;

/// The gradient that comes in from above, and those that go out to the inputs.
template <class M>
using OutGradToken = typename M::Signature::template Out<Token<const typename M::Scalar>>;
template <class M>
using WriteGradToken = typename M::Signature::template Write<Token<typename M::Scalar>>;
template <class M>
using ReadGradToken = typename M::Signature::template Read<Token<typename M::Scalar>>;
template <class M>
using OutGradSequence = typename M::Signature::template Out<Sequence<const typename M::Scalar>>;
template <class M>
using WriteGradSequence = typename M::Signature::template Write<Sequence<typename M::Scalar>>;
template <class M>
using ReadGradSequence = typename M::Signature::template Read<Sequence<typename M::Scalar>>;

/// Hyperparameters with write and read on a separate state.
template <class M>
concept Memory = requires(const M& m, StateOf<M>& s, WriteToken<M> w, ReadToken<M> r,
                          OutToken<M> y) {
  { M::name } -> std::convertible_to<std::string_view>;
  { m.signature() } -> std::same_as<typename M::Signature>;
  { m.state_extents() } -> std::same_as<typename M::template State<Extents>>;
  m.write(s, w);
  m.read(s, r, y);
}
&&std::copyable<StateOf<M>>&& Record<StateOf<M>>;

/// Reading leaves the state as it is: many reads a token, generic backward.
template <class M>
concept PureRead = Memory<M> &&
    requires(const M& m, const StateOf<M>& s, ReadToken<M> r, OutToken<M> y) {
  m.read(s, r, y);
};

/// Brings a step of its own, equal to write then read up to rounding.
template <class M>
concept FusedStep = Memory<M> &&
    requires(const M& m, StateOf<M>& s, WriteToken<M> w, ReadToken<M> r, OutToken<M> y) {
  m.step(s, w, r, y);
};

/// Brings a scan of its own, equal to step after step up to rounding, for finite inputs.
template <class M>
concept OwnScan = Memory<M> &&
    requires(const M& m, StateOf<M>& s, WriteSequence<M> w, ReadSequence<M> r, OutSequence<M> y) {
  m.scan(s, w, r, y);
};

/// Can take a chunk of tokens at once in matrix form, equal to step after step for finite inputs.
template <class M>
concept Chunkable = Memory<M> &&
    requires(const M& m, StateOf<M>& s, WriteSequence<M> w, ReadSequence<M> r, OutSequence<M> y) {
  m.chunk(s, w, r, y);
};

/// Keeps slow weights among its state: a record `slow` that no write changes, so that its gradient
/// is that of the initial state. A layer around the rule learns them.
template <class M>
concept KeepsSlowWeights = Memory<M> && requires(StateOf<M>& s) {
  requires Record<decltype(s.slow)>;
};

/// Knows the vector-Jacobian products of one write and one read. `ds` enters as the gradient of the
/// state after the action and leaves as that of the state before it; dw and dr accumulate. A rule
/// whose read changes the state, and reads after it writes, is given the state after the read: what
/// a read changes has no part in its own answer.
template <class M>
concept StepDifferentiable = Memory<M> &&
    requires(const M& m, const StateOf<M>& s, StateOf<M>& ds, WriteToken<M> w, WriteGradToken<M> dw,
             ReadToken<M> r, OutGradToken<M> dy, ReadGradToken<M> dr) {
  m.write_vjp(s, w, ds, dw);
  m.read_vjp(s, r, dy, ds, dr);
};

/// Brings a backward pass over a whole sequence of its own.
template <class M>
concept OwnBackward = Memory<M> &&
    requires(const M& m, const StateOf<M>& s, WriteSequence<M> w, ReadSequence<M> r,
             OutGradSequence<M> dy, StateOf<M>& ds, WriteGradSequence<M> dw,
             ReadGradSequence<M> dr) {
  m.backward(s, w, r, dy, ds, dw, dr);
};

/// Has a scan that leaves something in a Trace.
template <class M>
concept LeavesTrace = Memory<M> &&
    requires(const M& m, StateOf<M>& s, typename M::Trace& trace, WriteSequence<M> w,
             ReadSequence<M> r, OutSequence<M> y) {
  m.scan(s, w, r, y, trace);
};

/// Brings a backward pass that goes by what its forward pass left in a Trace.
template <class M>
concept TracedBackward = OwnScan<M> && LeavesTrace<M> &&
    requires(const M& m, const StateOf<M>& initial, StateOf<M>& ds, typename M::Trace& trace,
             WriteSequence<M> w, ReadSequence<M> r, OutGradSequence<M> dy, WriteGradSequence<M> dw,
             ReadGradSequence<M> dr) {
  m.backward(initial, trace, w, r, dy, ds, dw, dr);
};

/// Has gradients for every input and the initial state, over sequences of any length.
template <class M>
concept Differentiable = StepDifferentiable<M> || OwnBackward<M> || TracedBackward<M>;

/// A stretch of writes can be summed up in a Segment that acts on any state later: a monoid.
template <class M>
concept Mergeable = Memory<M> &&
    requires(const M& m, typename M::Segment& g, const typename M::Segment& h, StateOf<M>& s,
             WriteToken<M> w) {
  { m.empty_segment() } -> std::same_as<typename M::Segment>;
  m.extend(g, w);  // one more write at the end of g
  m.merge(g, h);   // g becomes: first g, then h
  m.apply(h, s);   // s becomes the state after the writes of h
};

/// Both can stand behind the same layer.
template <class A, class B>
concept Interchangeable =
    Memory<A> && Memory<B> && std::same_as<typename A::Scalar, typename B::Scalar> &&
    std::same_as<typename A::Signature, typename B::Signature>;

/// Whether nothing is ever written into a rule's zero state, so that a layer around it has to learn
/// another one (`static constexpr bool learns_initial_state = true`).
template <class M> constexpr bool learns_initial_state() {
  if constexpr (requires { M::learns_initial_state; })
    return M::learns_initial_state;
  else
    return false;
}

/// Whether a rule reads before it writes (`static constexpr bool reads_first = true`).
template <class M> constexpr bool reads_first() {
  if constexpr (requires { M::reads_first; })
    return M::reads_first;
  else
    return false;
}

/// Names what keeps M from being a memory, one sentence an error, where a concept would only
/// refuse.
template <class M> constexpr bool assert_memory() {
  static_assert(
      requires { typename M::Scalar; }, "memory rule: `using Scalar = ...` is missing");
  static_assert(
      requires { typename M::Signature; },
      "memory rule: `using Signature = ...` is missing, e.g. fw::KeyValue<Dk, Dv>");
  static_assert(
      requires { typename StateOf<M>; },
      "memory rule: `template <class C> struct State` is missing");
  static_assert(
      requires { requires Record<StateOf<M>>; },
      "memory rule: State lists no `names` of its members");
  static_assert(
      requires { M::name; }, "memory rule: `static constexpr name` is missing");
  static_assert(
      requires(const M& m) { m.signature(); },
      "memory rule: `Signature signature() const` is missing");
  static_assert(
      requires(const M& m) { m.state_extents(); },
      "memory rule: `State<fw::Extents> state_extents() const` is missing");
  static_assert(
      requires(const M& m, StateOf<M>& s, WriteToken<M> w) { m.write(s, w); },
      "memory rule: `void write(StateOf<M>&, WriteToken<M>) const` is missing");
  static_assert(
      requires(const M& m, StateOf<M>& s, ReadToken<M> r, OutToken<M> y) { m.read(s, r, y); },
      "memory rule: `void read([const] StateOf<M>&, ReadToken<M>, OutToken<M>) const` "
      "is missing");
  static_assert(Memory<M>, "memory rule: a member has the wrong type; see fw::Memory");
  static_assert(
      !requires(const M& m) { &M::step; } || FusedStep<M>,
      "memory rule: `step` is there, but does not take (StateOf<M>&, WriteToken<M>, "
      "ReadToken<M>, OutToken<M>)");
  static_assert(
      !requires(const M& m) { &M::scan; } || OwnScan<M>,
      "memory rule: `scan` is there, but does not take (StateOf<M>&, WriteSequence<M>, "
      "ReadSequence<M>, OutSequence<M>)");
  static_assert(
      !requires(const M& m) { &M::chunk; } || Chunkable<M>,
      "memory rule: `chunk` is there, but does not take (StateOf<M>&, WriteSequence<M>, "
      "ReadSequence<M>, OutSequence<M>)");
  static_assert(
      !requires(const M& m) { &M::backward; } || OwnBackward<M> || TracedBackward<M>,
      "memory rule: `backward` is there, but does not take (const StateOf<M>& initial, "
      "WriteSequence<M>, ReadSequence<M>, OutGradSequence<M>, StateOf<M>&, WriteGradSequence<M>, "
      "ReadGradSequence<M>)");
  static_assert(!LeavesTrace<M> || TracedBackward<M>,
                "memory rule: `scan` leaves a Trace; then `scan` without one must be there, and "
                "`backward(const StateOf<M>& initial, Trace&, WriteSequence<M>, ReadSequence<M>, "
                "OutGradSequence<M>, StateOf<M>&, WriteGradSequence<M>, ReadGradSequence<M>)`");
  static_assert(
      !requires { &M::extend; } || Mergeable<M>,
      "memory rule: `extend` is there, but not all of Segment, empty_segment(), "
      "extend(Segment&, WriteToken<M>), merge(Segment&, const Segment&) and "
      "apply(const Segment&, StateOf<M>&)");
  static_assert(!(
                    requires { &M::write_vjp; } || requires { &M::read_vjp; }) ||
                    StepDifferentiable<M>,
                "memory rule: write_vjp(before, w, ds, dw) and read_vjp(s, r, dy, ds, dr) must "
                "both be there");
  return true;
}

}  // namespace fw
