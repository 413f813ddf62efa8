#pragma once

#include <algorithm>
#include <cmath>
#include <fastweights/algorithms/scan.hpp>
#include <fastweights/core/owned.hpp>
#include <vector>

/// \file
/// Gradients through a sequence of any length. The forward pass leaves a state every C tokens, the
/// backward pass rebuilds the C states in between, chunk by chunk from the end: T/C + C states in
/// memory instead of T, for one more forward pass of writes. C = √T unless told otherwise. Rules
/// may bring a backward pass of their own and keep something else: the sum rule the first state,
/// the delta rule besides 2 d_v numbers a token.
///
///     fw::Checkpoints<M> kept;
///     fw::scan(m, state, {K, V, beta}, {Q}, {Y}, kept);
///     auto ds = fw::zero_gradient(m);                        // gradient of the final state
///     fw::backward(m, kept, {K, V, beta}, {Q}, {dY}, ds, {dK, dV, dbeta}, {dQ});
///
/// ds leaves as the gradient of the initial state; dK, dV, dbeta, dQ accumulate.
/// Throws std::invalid_argument, naming the member, when a size does not fit. Gradients must not
/// overlap each other or what they are gradients of.

namespace fw {

namespace detail {

template <class M> struct TraceOf {
  struct type {};
};
template <TracedBackward M> struct TraceOf<M> { using type = typename M::Trace; };

}  // namespace detail

/// What the forward pass leaves for the backward pass, and the room the backward pass works in.
/// OwnedState by the caller and used again, it is allocated once; a rule's own backward pass may
/// take heap for a state more.
template <Memory M> struct Checkpoints {
  Index asked = 0;                 ///< tokens between two states, set by the user; 0: √T. Not for
                                   ///< rules with a backward pass of their own
  Index interval = 0;              ///< the same in the last forward pass
  Index steps = 0;                 ///< tokens of the last forward pass
  std::vector<StateOf<M>> states;  ///< the state before token 0, C, 2C, …
  std::vector<StateOf<M>> replay;  ///< the states inside one chunk
  OwnedOuts<M> buffer;             ///< for what a read that changes the state answers again
  typename detail::TraceOf<M>::type trace;  ///< of a rule that keeps more than states
};

namespace detail {

// A rule that brings its own backward pass asks for nothing but the initial state.
template <Memory M> Index checkpoint_interval(Index asked, Index steps) {
  if constexpr (OwnBackward<M> || TracedBackward<M>) return std::max<Index>(1, steps);
  if (asked > 0) return asked;
  return std::max<Index>(1, static_cast<Index>(std::sqrt(static_cast<double>(steps))));
}

template <Memory M>
void remember(std::vector<StateOf<M>>& states, std::size_t i, const StateOf<M>& state) {
  if (i < states.size())
    states[i] = state;  // in place: assigning a state of the same size does not allocate
  else
    states.push_back(state);
}

// A read that changes the state has to be done again as well; what it answers goes to `room`.
template <Memory M>
void read_again(const M& m, StateOf<M>& state, const ReadToken<M>& query, OwnedOuts<M>& buffer) {
  auto extents = m.signature().out();
  bool fits = true;  // the room may be another memory's
  for_each_member(
      [&](std::string_view, const auto& array, const Extent& e) {
        fits = fits && array.rows() == e.rows && array.cols() == e.width;
      },
      buffer, extents);
  if (!fits) buffer = owned_sequence<OwnedOuts<M>>(extents, 1, typename M::Scalar(0));
  const Index columns = check_chunks(M::name, query, m.signature().read());
  for_each_member(
      [&](std::string_view, Extent& e) {
        if (e.chunks) e.width = columns;
      },
      extents);
  m.read(state, query, token_at<OutToken<M>>(view<OutSequence<M>>(buffer), extents, 0));
}

// Step t of the forward pass once more, without its outputs.
template <Memory M>
void step_again(const M& m, StateOf<M>& state, const WriteSequence<M>& inputs,
                const ReadSequence<M>& queries, Index t, OwnedOuts<M>& buffer) {
  const auto read = [&] {
    if constexpr (!PureRead<M>)
      read_again(m, state, token_at<ReadToken<M>>(queries, m.signature().read(), t), buffer);
  };
  if constexpr (reads_first<M>()) read();
  m.write(state, token_at<WriteToken<M>>(inputs, m.signature().write(), t));
  if constexpr (!reads_first<M>()) read();
}

template <StepDifferentiable M>
void chunk_backward(const M& m, Checkpoints<M>& kept, Index first, Index count,
                    const WriteSequence<M>& inputs, const ReadSequence<M>& queries,
                    const OutGradSequence<M>& dy, StateOf<M>& ds, const WriteGradSequence<M>& dw,
                    const ReadGradSequence<M>& dr) {
  const auto in = m.signature().write();
  const auto asked = m.signature().read();
  const auto out = m.signature().out();
  auto& states = kept.replay;
  remember<M>(states, 0, kept.states[static_cast<std::size_t>(first / kept.interval)]);
  for (Index i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    remember<M>(states, at + 1, states[at]);
    step_again(m, states[at + 1], inputs, queries, first + i, kept.buffer);
  }
  for (Index i = count - 1; i >= 0; --i) {
    const auto at = static_cast<std::size_t>(i);
    const Index t = first + i;
    const auto read = [&](const StateOf<M>& s) {
      m.read_vjp(s, token_at<ReadToken<M>>(queries, asked, t),
                 token_at<OutGradToken<M>>(dy, out, t), ds,
                 token_at<ReadGradToken<M>>(dr, asked, t));
    };
    if constexpr (!reads_first<M>()) read(states[at + 1]);
    m.write_vjp(states[at], token_at<WriteToken<M>>(inputs, in, t), ds,
                token_at<WriteGradToken<M>>(dw, in, t));
    if constexpr (reads_first<M>()) read(states[at]);
  }
}

template <Memory M>
void scan_between_states(const M& m, StateOf<M>& state, const WriteSequence<M>& inputs,
                         const ReadSequence<M>& queries, const OutSequence<M>& outputs, Index total,
                         Checkpoints<M>& kept) {
  const auto signature = m.signature();
  std::size_t chunk = 0;
  for (Index t = 0; t < total || chunk == 0; t += kept.interval, ++chunk) {
    remember<M>(kept.states, chunk, state);
    const Index count = std::min(kept.interval, total - t);
    run_scan(m, state, steps(inputs, signature.write(), t, count),
             steps(queries, signature.read(), t, count), steps(outputs, signature.out(), t, count),
             count);
  }
}

}  // namespace detail

/// As scan, and leaves in `kept` what backward needs. Set kept.asked beforehand for another C.
template <Differentiable M>
void scan(const M& m, StateOf<M>& state, WriteSequence<M> inputs, ReadSequence<M> queries,
          OutSequence<M> outputs, Checkpoints<M>& kept) {
  const auto signature = m.signature();
  const Index total = detail::steps_of(inputs, signature.write());
  detail::check_scan(m, state, inputs, queries, total);
  detail::check_outputs(m, queries, outputs, total);
  kept.interval = detail::checkpoint_interval<M>(kept.asked, total);
  kept.steps = -1;  // of no sequence, should the scan throw
  if constexpr (TracedBackward<M>) {
    detail::remember<M>(kept.states, 0, state);
    m.scan(state, inputs, queries, outputs, kept.trace);
  } else {
    detail::scan_between_states(m, state, inputs, queries, outputs, total, kept);
  }
  kept.steps = total;
}

/// The gradients of a sequence whose forward pass left `kept`.
template <Differentiable M>
void backward(const M& m, Checkpoints<M>& kept, WriteSequence<M> inputs, ReadSequence<M> queries,
              OutGradSequence<M> dy, StateOf<M>& ds, WriteGradSequence<M> dw,
              ReadGradSequence<M> dr) {
  const auto signature = m.signature();
  const Index total = detail::steps_of(inputs, signature.write());
  if (kept.states.empty() || kept.steps != total)
    detail::throw_mismatch(M::name, "the sequence", total, "steps", std::max<Index>(0, kept.steps),
                           "the forward pass that was kept");
  detail::check_scan(m, kept.states[0], inputs, queries, total);
  detail::check_state(M::name, ds, m.state_extents());
  detail::check_outputs(m, queries, dy, total);
  detail::check_sequence(M::name, dw, signature.write(), total);
  detail::check_sequence(M::name, dr, signature.read(), total);
  detail::check_chunks(M::name, dw, signature.write(),
                       detail::check_chunks(M::name, inputs, signature.write()));
  detail::check_chunks(M::name, dr, signature.read(),
                       detail::check_chunks(M::name, queries, signature.read()));
  if constexpr (TracedBackward<M>) {
    m.backward(kept.states[0], kept.trace, inputs, queries, dy, ds, dw, dr);
  } else if constexpr (OwnBackward<M>) {
    m.backward(kept.states[0], inputs, queries, dy, ds, dw, dr);
  } else {
    const Index chunks = (total + kept.interval - 1) / kept.interval;
    for (Index c = chunks - 1; c >= 0; --c) {
      const Index first = c * kept.interval;
      detail::chunk_backward(m, kept, first, std::min(kept.interval, total - first), inputs,
                             queries, dy, ds, dw, dr);
    }
  }
}

/// The gradients of a sequence that starts from `initial`; runs the writes of the forward pass.
template <Differentiable M>
void backward(const M& m, const StateOf<M>& initial, WriteSequence<M> inputs,
              ReadSequence<M> queries, OutGradSequence<M> dy, StateOf<M>& ds,
              WriteGradSequence<M> dw, ReadGradSequence<M> dr) {
  const auto in = m.signature().write();
  const Index total = detail::steps_of(inputs, in);
  detail::check_scan(m, initial, inputs, queries, total);
  Checkpoints<M> kept;
  StateOf<M> state = initial;
  if constexpr (TracedBackward<M>) {
    auto outputs = make_record<OwnedOuts<M>>(dy, []<class Array>(const auto& array) {
      return Array(Array::Zero(array.rows(), array.cols()));
    });
    scan(m, state, inputs, queries, view<OutSequence<M>>(outputs), kept);
  } else {
    kept.interval = detail::checkpoint_interval<M>(0, total);
    kept.steps = total;
    kept.states.push_back(initial);
    const Index last_checkpoint = (total - 1) / kept.interval * kept.interval;
    for (Index t = 1; t <= last_checkpoint; ++t) {
      detail::step_again(m, state, inputs, queries, t - 1, kept.buffer);
      if (t % kept.interval == 0) kept.states.push_back(state);
    }
  }
  backward(m, kept, inputs, queries, dy, ds, dw, dr);
}

}  // namespace fw
