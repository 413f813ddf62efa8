#pragma once

#include <algorithm>
#include <cmath>
#include <fastweights/algorithms/scan.hpp>
#include <fastweights/core/owned.hpp>
#include <span>
#include <vector>

/// \file
/// Gradients through a sequence of any length. The forward pass stores a checkpoint of the state
/// every C tokens. The backward pass recomputes the C states of one segment (the tokens between two
/// checkpoints) at a time, from the last segment to the first. This takes T/C + C states of memory
/// instead of T, and one more forward pass of writes. C = √T by default. Rules with their own
/// backward pass may store something else: linear attention stores the first state; the delta rule
/// also its errors, d_v numbers per token, and needs the gradients of the updates, of the same
/// size.
///
///     fw::Checkpoints<M> checkpoints;
///     fw::scan(m, state, {K, V, beta}, {Q}, {Y}, checkpoints);
///     auto ds = fw::zero_gradient(m);                        // gradient of the final state
///     fw::backward(m, checkpoints, {K, V, beta}, {Q}, {dY}, ds, {dK, dV, dbeta}, {dQ});
///
/// On return ds is the gradient of the initial state; dK, dV, dbeta, dQ accumulate. Throws
/// std::invalid_argument, naming the member, when a size does not fit, and naming both members when
/// a gradient overlaps another one or an input, ds included; nothing is changed then. Keys that are
/// also the queries need two gradients; add them up afterwards.

namespace fw::inline FASTWEIGHTS_ABI {

namespace detail {

template <class M> struct TraceOf {
  struct type {};
};
template <CustomBackward M> struct TraceOf<M> {
  using type = typename BackwardImplementationOf<M>::Trace;
};

}  // namespace detail

/// The states that the forward pass stores for the backward pass, and the workspace of the backward
/// pass. Reuse the object to allocate only once; a rule's own backward pass may still allocate one
/// state.
template <Memory M> struct Checkpoints {
  Index requested_interval = 0;    ///< C, set by the user; 0 for √T. Ignored for rules with their
                                   ///< own backward pass
  Index interval = 0;              ///< C in the last forward pass
  Index steps = 0;                 ///< tokens of the last forward pass
  std::vector<StateOf<M>> states;  ///< the states before tokens 0, C, 2C, …
  std::vector<StateOf<M>> segment_states;   ///< the recomputed states of one segment
  OwnedOuts<M> recomputed_output;           ///< of a read
  typename detail::TraceOf<M>::type trace;  ///< for a rule with a Trace
};

namespace detail {

// A rule with its own backward pass needs only the initial state.
template <Memory M> Index checkpoint_interval(Index requested, Index steps) {
  if constexpr (CustomBackward<M>) return std::max<Index>(1, steps);
  if (requested > 0) return requested;
  return std::max<Index>(1, static_cast<Index>(std::sqrt(static_cast<double>(steps))));
}

template <Memory M>
void store_state(std::vector<StateOf<M>>& states, std::size_t i, const StateOf<M>& state) {
  if (i < states.size())
    states[i] = state;  // does not allocate if the sizes are equal
  else
    states.push_back(state);
}

// A read that changes the state is recomputed as well; its output goes to `output`.
template <Memory M>
void recompute_read(const M& m, StateOf<M>& state, const ReadToken<M>& query,
                    OwnedOuts<M>& output) {
  auto extents = m.signature().out();
  bool fits = true;  // the output may have the sizes of another memory
  for_each_member(
      [&](std::string_view, const auto& array, const MemberExtent& e) {
        fits = fits && array.rows() == e.rows && array.cols() == e.width;
      },
      output, extents);
  if (!fits) output = owned_sequence<OwnedOuts<M>>(extents, 1, typename M::Scalar(0));
  const Index columns = check_chunks(M::name, query, m.signature().read());
  for_each_member(
      [&](std::string_view, MemberExtent& e) {
        if (e.chunks) e.width = columns;
      },
      extents);
  m.read(state, query, token_at<OutToken<M>>(view<OutSequence<M>>(output), extents, 0));
}

// Recomputes step t of the forward pass without its outputs.
template <Memory M>
void recompute_step(const M& m, StateOf<M>& state, const WriteSequence<M>& inputs,
                    const ReadSequence<M>& queries, Index t, OwnedOuts<M>& output) {
  const auto read = [&] {
    if constexpr (!PureRead<M>)
      recompute_read(m, state, token_at<ReadToken<M>>(queries, m.signature().read(), t), output);
  };
  if constexpr (reads_first<M>()) read();
  m.write(state, token_at<WriteToken<M>>(inputs, m.signature().write(), t));
  if constexpr (!reads_first<M>()) read();
}

template <StepDifferentiable M>
void segment_backward(const M& m, Checkpoints<M>& checkpoints, Index first, Index count,
                      const WriteSequence<M>& inputs, const ReadSequence<M>& queries,
                      const OutGradSequence<M>& dy, StateOf<M>& ds,
                      const WriteGradSequence<M>& dinputs, const ReadGradSequence<M>& dqueries) {
  const auto write_extents = m.signature().write();
  const auto read_extents = m.signature().read();
  const auto output_extents = m.signature().out();
  auto& states = checkpoints.segment_states;
  store_state<M>(states, 0,
                 checkpoints.states[static_cast<std::size_t>(first / checkpoints.interval)]);
  for (Index i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    store_state<M>(states, at + 1, states[at]);
    recompute_step(m, states[at + 1], inputs, queries, first + i, checkpoints.recomputed_output);
  }
  for (Index i = count - 1; i >= 0; --i) {
    const auto at = static_cast<std::size_t>(i);
    const Index t = first + i;
    const auto read = [&](const StateOf<M>& s) {
      m.read_vjp(s, token_at<ReadToken<M>>(queries, read_extents, t),
                 token_at<OutGradToken<M>>(dy, output_extents, t), ds,
                 token_at<ReadGradToken<M>>(dqueries, read_extents, t));
    };
    if constexpr (!reads_first<M>()) read(states[at + 1]);
    m.write_vjp(states[at], token_at<WriteToken<M>>(inputs, write_extents, t), ds,
                token_at<WriteGradToken<M>>(dinputs, write_extents, t));
    if constexpr (reads_first<M>()) read(states[at]);
  }
}

template <Memory M>
void scan_segments(const M& m, StateOf<M>& state, const WriteSequence<M>& inputs,
                   const ReadSequence<M>& queries, const OutSequence<M>& outputs, Index total,
                   Checkpoints<M>& checkpoints) {
  const auto signature = m.signature();
  std::size_t segment = 0;
  for (Index t = 0; t < total || segment == 0; t += checkpoints.interval, ++segment) {
    store_state<M>(checkpoints.states, segment, state);
    const Index count = std::min(checkpoints.interval, total - t);
    run_scan(m, state, steps(inputs, signature.write(), t, count),
             steps(queries, signature.read(), t, count), steps(outputs, signature.out(), t, count),
             count);
  }
}

// The gradients of inputs and queries are outputs. `ds`: those of one state or of several.
template <Memory M>
void check_gradients_apart(const WriteSequence<M>& inputs, const ReadSequence<M>& queries,
                           const OutGradSequence<M>& dy, std::span<const StateOf<M>> ds,
                           const WriteGradSequence<M>& dinputs,
                           const ReadGradSequence<M>& dqueries) {
  constexpr std::string_view gradient = "the gradient of ";
  Regions given, overwritten;
  given.add(inputs).add(queries).add(dy, gradient);
  overwritten.add(dinputs, gradient).add(dqueries, gradient);
  check_regions_apart(M::name, overwritten, given);
  for (const StateOf<M>& each : ds)
    check_regions_outside(M::name, "the gradient of the state's ", {}, each, overwritten, given);
}

}  // namespace detail

/// As scan, and stores in `checkpoints` what backward needs. For another C set
/// checkpoints.requested_interval before the call.
template <Differentiable M>
void scan(const M& m, StateOf<M>& state, WriteSequence<M> inputs, ReadSequence<M> queries,
          OutSequence<M> outputs, Checkpoints<M>& checkpoints) {
  const auto signature = m.signature();
  const Index total = detail::steps_of(inputs, signature.write());
  detail::check_scan(m, state, inputs, queries, total);
  detail::check_outputs(m, state, inputs, queries, outputs, total);
  checkpoints.interval = detail::checkpoint_interval<M>(checkpoints.requested_interval, total);
  checkpoints.steps = -1;  // marks the checkpoints as invalid in case the scan throws
  if constexpr (CustomBackward<M> && TracedScan<M>) {
    detail::store_state<M>(checkpoints.states, 0, state);
    detail::backward_implementation(m).scan(state, inputs, queries, outputs, checkpoints.trace);
  } else {
    detail::scan_segments(m, state, inputs, queries, outputs, total, checkpoints);
  }
  checkpoints.steps = total;
}

/// The gradients of a sequence whose forward pass filled `checkpoints`.
template <Differentiable M>
void backward(const M& m, Checkpoints<M>& checkpoints, WriteSequence<M> inputs,
              ReadSequence<M> queries, OutGradSequence<M> dy, StateOf<M>& ds,
              WriteGradSequence<M> dinputs, ReadGradSequence<M> dqueries) {
  const auto signature = m.signature();
  const Index total = detail::steps_of(inputs, signature.write());
  if (checkpoints.states.empty() || checkpoints.steps != total)
    detail::throw_mismatch(M::name, "the sequence", total, "steps",
                           std::max<Index>(0, checkpoints.steps),
                           "the forward pass of these checkpoints");
  detail::check_scan(m, checkpoints.states[0], inputs, queries, total);
  detail::check_state(M::name, ds, m.state_extents());
  detail::check_output_sizes(m, queries, dy, total);
  detail::check_sequence(M::name, dinputs, signature.write(), total);
  detail::check_sequence(M::name, dqueries, signature.read(), total);
  detail::check_chunks(M::name, dinputs, signature.write(),
                       detail::check_chunks(M::name, inputs, signature.write()));
  detail::check_chunks(M::name, dqueries, signature.read(),
                       detail::check_chunks(M::name, queries, signature.read()));
  detail::check_gradients_apart<M>(inputs, queries, dy, {&ds, 1}, dinputs, dqueries);
  static_assert(
      !requires { &M::backward; } || CustomBackward<M>,
      "fastweights: the rule's own `backward` is not used; fw::assert_memory says why");
  if constexpr (CustomBackward<M>) {
    detail::backward_implementation(m).backward(checkpoints.states[0], checkpoints.trace, inputs,
                                                queries, dy, ds, dinputs, dqueries);
  } else {
    const Index segments = (total + checkpoints.interval - 1) / checkpoints.interval;
    for (Index i = segments - 1; i >= 0; --i) {
      const Index first = i * checkpoints.interval;
      detail::segment_backward(m, checkpoints, first, std::min(checkpoints.interval, total - first),
                               inputs, queries, dy, ds, dinputs, dqueries);
    }
  }
}

/// The gradients of a sequence that starts from `initial`. Runs the writes of the forward pass.
template <Differentiable M>
void backward(const M& m, const StateOf<M>& initial, WriteSequence<M> inputs,
              ReadSequence<M> queries, OutGradSequence<M> dy, StateOf<M>& ds,
              WriteGradSequence<M> dinputs, ReadGradSequence<M> dqueries) {
  const auto write_extents = m.signature().write();
  const Index total = detail::steps_of(inputs, write_extents);
  detail::check_scan(m, initial, inputs, queries, total);
  if (&ds == &initial)
    detail::throw_invalid({M::name,
                           ": the gradient of the state is the initial state itself, expected one "
                           "that zero_gradient makes"});
  Checkpoints<M> checkpoints;
  StateOf<M> state = initial;
  if constexpr (CustomBackward<M> && TracedScan<M>) {
    auto outputs = make_record<OwnedOuts<M>>(dy, []<class Array>(const auto& array) {
      return Array(Array::Zero(array.rows(), array.cols()));
    });
    scan(m, state, inputs, queries, view<OutSequence<M>>(outputs), checkpoints);
  } else {
    checkpoints.interval = detail::checkpoint_interval<M>(0, total);
    checkpoints.steps = total;
    checkpoints.states.push_back(initial);
    const Index last_checkpoint = (total - 1) / checkpoints.interval * checkpoints.interval;
    for (Index t = 1; t <= last_checkpoint; ++t) {
      detail::recompute_step(m, state, inputs, queries, t - 1, checkpoints.recomputed_output);
      if (t % checkpoints.interval == 0) checkpoints.states.push_back(state);
    }
  }
  backward(m, checkpoints, inputs, queries, dy, ds, dinputs, dqueries);
}

/// The gradients of reads of one state, as many as queries: those of the state and of the queries
/// accumulate.
template <ReadsAfterWrites M>
void reads_backward(const M& m, const StateOf<M>& state, ReadSequence<M> queries,
                    OutGradSequence<M> dy, StateOf<M>& ds, ReadGradSequence<M> dqueries) {
  const auto extents = m.signature().read();
  const auto output_extents = m.signature().out();
  const Index total = detail::steps_of(dy, output_extents);
  fw::check_state(m, state);
  detail::check_state(M::name, ds, m.state_extents());
  detail::check_sequence(M::name, queries, extents, total);
  detail::check_output_sizes(m, queries, dy, total);
  detail::check_sequence(M::name, dqueries, extents, total);
  detail::check_chunks(M::name, dqueries, extents, detail::check_chunks(M::name, queries, extents));
  if (&ds == &state)
    detail::throw_invalid({M::name,
                           ": the gradient of the state is the state itself, expected one that "
                           "zero_gradient makes"});
  detail::Regions given, overwritten;
  given.add(queries).add(dy, "the gradient of ");
  overwritten.add(dqueries, "the gradient of ");
  detail::check_regions_apart(M::name, overwritten, given);
  detail::check_regions_outside(M::name, "the gradient of the state's ", {}, ds, overwritten,
                                given);
  detail::check_regions_outside(M::name, "the state's ", {}, state, overwritten, {});
  for (Index t = 0; t < total; ++t)
    m.read_vjp(state, detail::token_at<ReadToken<M>>(queries, extents, t),
               detail::token_at<OutGradToken<M>>(dy, output_extents, t), ds,
               detail::token_at<ReadGradToken<M>>(dqueries, extents, t));
}

}  // namespace fw
