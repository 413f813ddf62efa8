#pragma once

#include <fastweights/algorithms/heads.hpp>
#include <fastweights/algorithms/scan.hpp>
#include <span>

namespace fw::inline FASTWEIGHTS_ABI {

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
  const auto signature = m.signature();
  const auto streams = static_cast<Index>(states.size());
  if (const Index given = detail::steps_of(inputs, signature.write()); given != streams)
    detail::throw_mismatch(M::name, "step: the inputs", given, "columns", streams, "the states");
  for (const StateOf<M>& state : states) fw::check_state(m, state);
  detail::check_sequence(M::name, inputs, signature.write(), streams);
  detail::check_sequence(M::name, queries, signature.read(), streams);
  detail::check_chunks(M::name, inputs, signature.write());
  detail::check_outputs(m, queries, outputs, streams);
  if constexpr (requires { m.check_capacity(states[0], Index(1)); })
    for (const StateOf<M>& state : states) m.check_capacity(state, 1);
  for_each_head(streams, parallel, [&](Index b) {
    detail::run_step(m, states[static_cast<std::size_t>(b)],
                     detail::token_at<WriteToken<M>>(inputs, signature.write(), b),
                     detail::token_at<ReadToken<M>>(queries, signature.read(), b),
                     detail::token_at<OutToken<M>>(outputs, signature.out(), b));
  });
}

}  // namespace fw
