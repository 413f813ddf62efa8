#pragma once

#include <concepts>
#include <fastweights/core/forms.hpp>
#include <fastweights/core/member_storage.hpp>
#include <string_view>

/// \file
/// The memory concepts. A memory is hyperparameters plus two actions on a separate State, `write`
/// and `read`. Everything else is optional: the generic algorithms replace what a rule leaves out.
///
///     template <class S> struct Rule {
///       using Scalar = S;
///       using Signature = ...;                    // Write, Read, Out and their extents
///       template <class C> struct State {...};
///       static constexpr std::string_view name;   // for errors and tables
///       Signature signature() const;
///       State<Extents> state_extents() const;
///       void write(StateOf<Rule>&, WriteToken<Rule>) const;
///       void read(const StateOf<Rule>&, ReadToken<Rule>, OutToken<Rule>) const;
///     };
///
/// The members check nothing. fw::write, fw::read, fw::step, fw::scan and fw::backward are the
/// public boundary: they check all sizes before anything is changed.

namespace fw::inline FASTWEIGHTS_ABI {

/// A state of memory M that owns its matrices.
template <class M> using StateOf = typename M::template State<Owned<typename M::Scalar>>;

/// Inputs of a write of memory M for one token: views of the caller's numbers.
template <class M>
using WriteToken = typename M::Signature::template Write<Token<const typename M::Scalar>>;
/// Inputs of a read of memory M for one token.
template <class M>
using ReadToken = typename M::Signature::template Read<Token<const typename M::Scalar>>;
/// Outputs of a read of one token.
template <class M> using OutToken = typename M::Signature::template Out<Token<typename M::Scalar>>;

/// Inputs of the writes of memory M for a sequence, one token per column.
template <class M>
using WriteSequence = typename M::Signature::template Write<Sequence<const typename M::Scalar>>;
/// Inputs of the reads of memory M for a sequence.
template <class M>
using ReadSequence = typename M::Signature::template Read<Sequence<const typename M::Scalar>>;
/// Outputs of the reads of a sequence.
template <class M>
using OutSequence = typename M::Signature::template Out<Sequence<typename M::Scalar>>;

/// The incoming gradient of the outputs, and the gradients of the inputs.
template <class M>
using OutGradToken = typename M::Signature::template Out<Token<const typename M::Scalar>>;
/// The gradients of what one token writes.
template <class M>
using WriteGradToken = typename M::Signature::template Write<Token<typename M::Scalar>>;
/// The gradients of what one token reads with.
template <class M>
using ReadGradToken = typename M::Signature::template Read<Token<typename M::Scalar>>;
/// The incoming gradient of the outputs of a sequence.
template <class M>
using OutGradSequence = typename M::Signature::template Out<Sequence<const typename M::Scalar>>;
/// The gradients of what a sequence writes.
template <class M>
using WriteGradSequence = typename M::Signature::template Write<Sequence<typename M::Scalar>>;
/// The gradients of what a sequence reads with.
template <class M>
using ReadGradSequence = typename M::Signature::template Read<Sequence<typename M::Scalar>>;

namespace detail {

template <class View> struct ErrorRecord {
  View error;  ///< as `value`
  static constexpr auto names = fw::names("error");
};

}  // namespace detail

/// The error of a write of one token, to be overwritten, for the members `value` of the token.
template <class M>
using ErrorToken = detail::ErrorRecord<decltype(std::declval<WriteGradToken<M>&>().value)>;

/// Hyperparameters with write and read on a separate state.
template <class M>
concept Memory = requires(const M& m, StateOf<M>& s, WriteToken<M> input, ReadToken<M> query,
                          OutToken<M> y) {
  { M::name } -> std::convertible_to<std::string_view>;
  { m.signature() } -> std::same_as<typename M::Signature>;
  { m.state_extents() } -> std::same_as<typename M::template State<Extents>>;
  m.write(s, input);
  m.read(s, query, y);
}
&&std::copyable<StateOf<M>>&& Record<StateOf<M>>;

/// Reads leave the state unchanged, which allows several reads per token.
template <class M>
concept PureRead = Memory<M> &&
    requires(const M& m, const StateOf<M>& s, ReadToken<M> query, OutToken<M> y) {
  m.read(s, query, y);
};

/// Has its own step, equal to write then read up to rounding. The kernels give it to their rules.
template <class M>
concept FusedStep = Memory<M> && requires(const detail::ScanImplementationOf<M>& m, StateOf<M>& s,
                                          WriteToken<M> input, ReadToken<M> query, OutToken<M> y) {
  m.step(s, input, query, y);
};

/// Its writes subtract what W answers to the key, and can give the difference. The kernels do this
/// for their rules.
template <class M>
concept GivesErrors = Memory<M> && requires(const detail::ScanImplementationOf<M>& forms,
                                            StateOf<M>& s, WriteToken<M> input, ErrorToken<M> y) {
  forms.write(s, input, y.error);
};

namespace detail {

/// Writes one token: with the write of the kernels, if the rule has it, or its own. Both are equal
/// up to rounding.
template <Memory M>
EIGEN_ALWAYS_INLINE void run_write(const M& m, StateOf<M>& s, const WriteToken<M>& input) {
  if constexpr (requires(const ScanImplementationOf<M>& forms) { forms.write(s, input); })
    scan_implementation(m).write(s, input);
  else
    m.write(s, input);
}

}  // namespace detail

/// Has its own scan, equal to step after step up to rounding, for finite inputs. The kernels give
/// it to their rules.
template <class M>
concept CustomScan = Memory<M> &&
    requires(const detail::ScanImplementationOf<M>& m, StateOf<M>& s, WriteSequence<M> inputs,
             ReadSequence<M> queries, OutSequence<M> y) {
  m.scan(s, inputs, queries, y);
};

/// True if a step and a scan read the values before they overwrite the outputs, so that an output
/// may be the value itself. The kernels do; rules that read first cannot.
template <class M> constexpr bool output_may_be_value() {
  if constexpr (requires { detail::ScanImplementationOf<M>::in_place; })
    return detail::ScanImplementationOf<M>::in_place;
  else
    return false;
}

/// Has a chunkwise form in matrix products, equal to step after step for finite inputs.
template <class M>
concept Chunkable = Memory<M> && requires(const M& m, StateOf<M>& s, WriteSequence<M> inputs,
                                          ReadSequence<M> queries, OutSequence<M> y) {
  m.chunk(s, inputs, queries, y);
};

/// Its state has slow weights: a record `slow` that no write changes, so that its gradient is the
/// gradient of the initial state. A layer around the rule learns them.
template <class M>
concept KeepsSlowWeights = Memory<M> && requires(StateOf<M>& s) {
  requires Record<decltype(s.slow)>;
};

/// Has the vector-Jacobian products of one write and one read. `ds` is the gradient of the state
/// after the action on entry and of the state before it on return; dinput and dquery accumulate. If
/// a rule reads after it writes, read_vjp gets the state after the read. So a read may change only
/// entries that do not affect its own output.
template <class M>
concept StepDifferentiable = Memory<M> &&
    requires(const M& m, const StateOf<M>& s, StateOf<M>& ds, WriteToken<M> input,
             WriteGradToken<M> dinput, ReadToken<M> query, OutGradToken<M> dy,
             ReadGradToken<M> dquery) {
  m.write_vjp(s, input, ds, dinput);
  m.read_vjp(s, query, dy, ds, dquery);
};

/// Can be read with all queries of a sequence after all of its writes, with gradients.
template <class M>
concept ReadsAfterWrites = PureRead<M> && StepDifferentiable<M>;

/// Has a scan that stores intermediate results in a Trace.
template <class M>
concept TracedScan = Memory<M> &&
    requires(const detail::BackwardImplementationOf<M>& m, StateOf<M>& s,
             typename detail::BackwardImplementationOf<M>::Trace& trace, WriteSequence<M> inputs,
             ReadSequence<M> queries, OutSequence<M> y) {
  m.scan(s, inputs, queries, y, trace);
};

namespace detail {

template <class M>
concept HasEmptyTrace = std::is_empty_v<typename BackwardImplementationOf<M>::Trace>;

}  // namespace detail

/// Has its own backward pass over a whole sequence, which uses the Trace of the forward pass. An
/// empty Trace needs no scan that fills it.
template <class M>
concept CustomBackward = Memory<M> &&
                         (detail::HasEmptyTrace<M> || (CustomScan<M> && TracedScan<M>)) &&
                         requires(const detail::BackwardImplementationOf<M>& m,
                                  const StateOf<M>& initial, StateOf<M>& ds,
                                  typename detail::BackwardImplementationOf<M>::Trace& trace,
                                  WriteSequence<M> inputs, ReadSequence<M> queries,
                                  OutGradSequence<M> dy, WriteGradSequence<M> dinputs,
                                  ReadGradSequence<M> dqueries) {
  m.backward(initial, trace, inputs, queries, dy, ds, dinputs, dqueries);
};

/// Has gradients of every input and the initial state, over sequences of any length.
template <class M>
concept Differentiable = StepDifferentiable<M> || CustomBackward<M>;

/// Consecutive writes compose into a Segment, which can be applied to any state later. Segments
/// form a monoid.
template <class M>
concept Mergeable = Memory<M> &&
    requires(const M& m, typename M::Segment& g, const typename M::Segment& h, StateOf<M>& s,
             WriteToken<M> input) {
  { m.empty_segment() } -> std::same_as<typename M::Segment>;
  m.extend(g, input);  // one more write at the end of g
  m.merge(g, h);       // g becomes: first g, then h, maybe g itself; parallel_scan does not call it
  m.apply(h, s);       // s becomes the state after the writes of h
};

/// Extends a segment by a whole sequence, equal to token after token up to rounding, for finite
/// inputs.
template <class M>
concept ExtendsBySequence = Mergeable<M> &&
    requires(const M& m, typename M::Segment& g, WriteSequence<M> inputs) {
  m.extend_by_sequence(g, inputs);
};

/// The values that a run of writes can give to a counter of a state, here with its value `given`.
struct CountRange {
  std::string_view name;
  /// The value, and the range that it must be in.
  Index given = 0, least = 0, most = max_count;
  std::string_view why = {};  ///< of the range, for the message: " for this many tokens"
};

/// Says what the counters of its state may be, where that is less than 0 to max_count, and how they
/// go together: `std::array<CountRange, N> count_ranges(const StateOf<M>&) const`. Every call with
/// a state checks it, and so does loading one.
template <class M>
concept LimitsCounts = Memory<M> && requires(const M& m, const StateOf<M>& s) {
  { *m.count_ranges(s).begin() } -> std::convertible_to<const CountRange&>;
};

/// Both can be used by the same layer.
template <class A, class B>
concept Interchangeable =
    Memory<A> && Memory<B> && std::same_as<typename A::Scalar, typename B::Scalar> &&
    std::same_as<typename A::Signature, typename B::Signature>;

/// True if a layer around the rule has to learn the initial state, because writes never change a
/// zero state (`static constexpr bool learns_initial_state = true`).
template <class M> constexpr bool learns_initial_state() {
  if constexpr (requires { M::learns_initial_state; })
    return M::learns_initial_state;
  else
    return false;
}

/// True if a rule reads before it writes (`static constexpr bool reads_first = true`).
template <class M> constexpr bool reads_first() {
  if constexpr (requires { M::reads_first; })
    return M::reads_first;
  else
    return false;
}

namespace detail {

// True if M has members for the kernels.
template <class M> inline constexpr bool has_kernel_members = requires {
  &M::template coefficients<StateOf<M>>;
}
|| requires { &M::template correction<StateOf<M>>; };
template <class M> inline constexpr bool wants_kernel_backward = requires {
  requires M::kernel_backward;
};

// Makes the compiler check that f gives every size of its record.
template <class F> constexpr void instantiate(const F&) {}

}  // namespace detail

/// Compile-time errors that say why S is not a signature.
template <class S> constexpr bool assert_signature() {
  static_assert(
      requires {
        typename S::template Write<Extents>;
        typename S::template Read<Extents>;
        typename S::template Out<Extents>;
      },
      "signature: `template <class C> struct Write`, `Read` or `Out` is missing");
  static_assert(
      requires {
        requires Record<typename S::template Write<Extents>>;
        requires Record<typename S::template Read<Extents>>;
        requires Record<typename S::template Out<Extents>>;
      },
      "signature: Write, Read or Out lists no `names` of its members");
  static_assert(detail::names_every_member<typename S::template Write<Extents>>(),
                "signature: `names` of Write must list all its members, in order");
  static_assert(detail::names_every_member<typename S::template Read<Extents>>(),
                "signature: `names` of Read must list all its members, in order");
  static_assert(detail::names_every_member<typename S::template Out<Extents>>(),
                "signature: `names` of Out must list all its members, in order");
  static_assert(
      requires(const S& s) {
        { s.write() } -> std::same_as<typename S::template Write<Extents>>;
      },
      "signature: `Write<fw::Extents> write() const` is missing");
  static_assert(
      requires(const S& s) {
        { s.read() } -> std::same_as<typename S::template Read<Extents>>;
      },
      "signature: `Read<fw::Extents> read() const` is missing");
  static_assert(
      requires(const S& s) {
        { s.out() } -> std::same_as<typename S::template Out<Extents>>;
      },
      "signature: `Out<fw::Extents> out() const` is missing");
  if constexpr (requires {
                  &S::write;
                  &S::read;
                  &S::out;
                }) {
    detail::instantiate(&S::write);
    detail::instantiate(&S::read);
    detail::instantiate(&S::out);
  }
  return true;
}

/// Compile-time errors that say why M is not a memory. A failed concept would not tell the reason.
template <class M> constexpr bool assert_memory() {
  static_assert(
      requires { typename M::Scalar; }, "memory rule: `using Scalar = ...` is missing");
  static_assert(
      requires { typename M::Signature; },
      "memory rule: `using Signature = ...` is missing, e.g. fw::KeyValue<Dk, Dv>");
  assert_signature<typename M::Signature>();
  static_assert(
      requires { typename StateOf<M>; },
      "memory rule: `template <class C> struct State` is missing");
  static_assert(
      requires { requires Record<StateOf<M>>; },
      "memory rule: State lists no `names` of its members");
  static_assert(detail::names_every_member<typename M::template State<Extents>>(),
                "memory rule: `names` of State must list all its members, in order");
  static_assert(
      requires { M::name; }, "memory rule: `static constexpr name` is missing");
  static_assert(
      requires(const M& m) { m.signature(); },
      "memory rule: `Signature signature() const` is missing");
  static_assert(
      requires(const M& m) { m.state_extents(); },
      "memory rule: `State<fw::Extents> state_extents() const` is missing");
  static_assert(
      requires(const M& m, StateOf<M>& s, WriteToken<M> input) { m.write(s, input); },
      "memory rule: `void write(StateOf<M>&, WriteToken<M>) const` is missing");
  static_assert(
      requires(const M& m, StateOf<M>& s, ReadToken<M> query, OutToken<M> y) {
        m.read(s, query, y);
      },
      "memory rule: `void read([const] StateOf<M>&, ReadToken<M>, OutToken<M>) const` "
      "is missing");
  static_assert(Memory<M>, "memory rule: a member has the wrong type; see fw::Memory");
  static_assert(
      !requires(const M& m) { &M::step; } || FusedStep<M>,
      "memory rule: `step` exists, but does not take (StateOf<M>&, WriteToken<M>, "
      "ReadToken<M>, OutToken<M>)");
  static_assert(
      !requires(const M& m) { &M::scan; } || CustomScan<M>,
      "memory rule: `scan` exists, but does not take (StateOf<M>&, WriteSequence<M>, "
      "ReadSequence<M>, OutSequence<M>)");
  static_assert(
      !detail::has_kernel_members<M> || !detail::KernelScalar<typename M::Scalar> || FusedStep<M> ||
          CustomScan<M>,
      "memory rule: `coefficients` or `correction` exists, but the kernels cannot use it: it does "
      "not take what kernels/rule.hpp says, or `decay_kind`, `has_delta_term` or the state's W is "
      "missing, or W decays by value row, which takes a scan of kernels/scan/row_scan.hpp");
  static_assert(
      !requires(const M& m) { &M::chunk; } || Chunkable<M>,
      "memory rule: `chunk` exists, but does not take (StateOf<M>&, WriteSequence<M>, "
      "ReadSequence<M>, OutSequence<M>)");
  static_assert(
      !requires(const M& m) { &M::backward; } || CustomBackward<M>,
      "memory rule: `backward` exists, but does not take (const StateOf<M>& initial, Trace&, "
      "WriteSequence<M>, ReadSequence<M>, OutGradSequence<M>, StateOf<M>&, WriteGradSequence<M>, "
      "ReadGradSequence<M>), or `Trace` or the `scan` that fills it is missing");
  static_assert(!detail::wants_kernel_backward<M> || !detail::KernelScalar<typename M::Scalar> ||
                    CustomBackward<M>,
                "memory rule: `kernel_backward` is true, but the kernels do not run the rule, or "
                "`#include <fastweights/kernels/backward/forms.hpp>` is missing");
  static_assert(!TracedScan<M> || CustomBackward<M>,
                "memory rule: `scan` takes a Trace, but a `scan` without it is missing or "
                "`backward(const StateOf<M>& initial, Trace&, WriteSequence<M>, ReadSequence<M>, "
                "OutGradSequence<M>, StateOf<M>&, WriteGradSequence<M>, ReadGradSequence<M>)`");
  static_assert(
      !requires { &M::violation; } ||
          requires(const M& m, const WriteToken<M>& t) { m.violation(t).quantity; },
      "memory rule: `violation` exists, but is not `Violation violation(const WriteToken<M>&) "
      "const`");
  static_assert(
      !requires { &M::count_ranges; } || LimitsCounts<M>,
      "memory rule: `count_ranges` exists, but is not "
      "`std::array<fw::CountRange, N> count_ranges(const StateOf<M>&) const`");
  static_assert(
      !requires { &M::extend; } || Mergeable<M>,
      "memory rule: `extend` exists, but not all of Segment, empty_segment(), "
      "extend(Segment&, WriteToken<M>), merge(Segment&, const Segment&) and "
      "apply(const Segment&, StateOf<M>&)");
  static_assert(
      !requires { &M::extend_by_sequence; } || ExtendsBySequence<M>,
      "memory rule: `extend_by_sequence` exists, but does not take (Segment&, WriteSequence<M>), "
      "or the rule is not Mergeable");
  static_assert(!(
                    requires { &M::write_vjp; } || requires { &M::read_vjp; }) ||
                    StepDifferentiable<M>,
                "memory rule: write_vjp(before, input, ds, dinput) and "
                "read_vjp(s, query, dy, ds, dquery) must both exist");
  static_assert(
      !Differentiable<M> ||
          requires(const M& m) {
            { m.template cast<typename M::Scalar>() } -> std::same_as<M>;
          },
      "memory rule: `template <class T> Rule<T> cast() const` is missing, the rule in another "
      "scalar: the gradient check runs it on complex numbers");
  if constexpr (requires { &M::state_extents; }) detail::instantiate(&M::state_extents);
  return true;
}

}  // namespace fw
