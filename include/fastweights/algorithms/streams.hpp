#pragma once

#include <fastweights/algorithms/scan.hpp>
#include <fastweights/math/parallel_for.hpp>
#include <span>

namespace fw::inline FASTWEIGHTS_ABI {

namespace detail {

// state_of(b) is the state of stream b.
template <Memory M, class StateAt>
void step_streams(const M& m, Index streams, const StateAt& state_of, WriteSequence<M> inputs,
                  ReadSequence<M> queries, OutSequence<M> outputs, bool parallel) {
  const auto signature = m.signature();
  if (const Index given = steps_of(inputs, signature.write()); given != streams)
    throw_mismatch(M::name, "step: the inputs", given, "columns", streams, "the states");
  for (Index b = 0; b < streams; ++b) fw::check_state(m, state_of(b));
  check_sequence(M::name, inputs, signature.write(), streams);
  check_sequence(M::name, queries, signature.read(), streams);
  check_chunks(M::name, inputs, signature.write());
  check_outputs(m, inputs, queries, outputs, streams);
  for (Index b = 0; b < streams; ++b) check_outside(M::name, state_of(b), outputs, queries, inputs);
  if constexpr (requires { m.check_capacity(state_of(0), Index(1)); })
    for (Index b = 0; b < streams; ++b) m.check_capacity(state_of(b), 1);
  parallel_for(streams, parallel, [&](Index b) {
    run_step(m, state_of(b), token_at<WriteToken<M>>(inputs, signature.write(), b),
             token_at<ReadToken<M>>(queries, signature.read(), b),
             token_at<OutToken<M>>(outputs, signature.out(), b));
  });
}

}  // namespace detail

/// One token of each of B streams or heads: states[b] takes column b of the inputs, and answers in
/// column b of the outputs. The same as B calls of fw::step, with one check of the sizes.
///
///     std::vector<fw::StateOf<M>> states(B, fw::initial_state(memory));
///     fw::step(memory, std::span(states), {K, V, beta}, {Q}, {Y});   // K: d_k×B, V, Y: d_v×B
///
/// With `parallel` and OpenMP the streams are shared by threads, with the same bits. Throws as
/// fw::step, and then no state is changed (a full memory with WhenFull::refuse included).
template <Memory M>
void step(const M& m, std::span<StateOf<M>> states, WriteSequence<M> inputs,
          ReadSequence<M> queries, OutSequence<M> outputs, bool parallel = false) {
  detail::step_streams(
      m, static_cast<Index>(states.size()),
      [&](Index b) -> StateOf<M>& { return states[static_cast<std::size_t>(b)]; }, inputs, queries,
      outputs, parallel);
}

}  // namespace fw
