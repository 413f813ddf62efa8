#pragma once

#include <algorithm>
#include <fastweights/algorithms/step.hpp>
#include <fastweights/core/errors.hpp>
#include <stdexcept>
#include <string>

/// \file
/// A whole sequence, with one token per column. `state` is the initial state on entry and the final
/// state on return; outputs are overwritten. Calls the rule's own scan if it has one, else a loop
/// over steps.
///
///     fw::scan(memory, state, {K, V, beta}, {Q}, {Y});   // K: d_k×T, V, Y: d_v×T, beta: T
///
/// A sequence may be cut into several scans. The result is the same up to rounding. It has the same
/// bits if the rule has no decay and every part but the last is a multiple of 4 tokens long; a part
/// of a single token is a step, which rounds differently.
///
/// A rule's own scan and chunked_scan agree with the steps for finite inputs; a NaN or infinity may
/// also affect outputs of earlier tokens in its block. Throws std::invalid_argument, naming the
/// member, when a size does not fit, and naming both members when an output overlaps an input or
/// another output, or any of them the state; nothing is changed. A full memory with
/// WhenFull::refuse throws std::length_error before the first token.

namespace fw::inline FASTWEIGHTS_ABI {

namespace detail {

template <Memory M>
void check_scan(const M& m, const StateOf<M>& state, const WriteSequence<M>& inputs,
                const ReadSequence<M>& queries, Index steps) {
  const auto signature = m.signature();
  fw::check_state(m, state);
  check_sequence(M::name, inputs, signature.write(), steps);
  check_sequence(M::name, queries, signature.read(), steps);
  check_chunks(M::name, inputs, signature.write());
  check_chunks(M::name, queries, signature.read());
  if constexpr (requires { m.check_capacity(state, steps); }) m.check_capacity(state, steps);
}

// `outputs` may also be gradients.
template <Memory M, class Outputs>
void check_output_sizes(const M& m, const ReadSequence<M>& queries, const Outputs& outputs,
                        Index steps) {
  const auto signature = m.signature();
  check_sequence(M::name, outputs, signature.out(), steps);
  check_chunks(M::name, outputs, signature.out(), check_chunks(M::name, queries, signature.read()));
}

// With `in_place` the outputs may be the values, if the rule allows it.
template <Memory M, bool in_place = false>
void check_outputs(const M& m, const WriteSequence<M>& inputs, const ReadSequence<M>& queries,
                   const OutSequence<M>& outputs, Index steps) {
  check_output_sizes(m, queries, outputs, steps);
  if constexpr (in_place && output_may_be_value<M>())
    check_apart_or_in_place(M::name, outputs, queries, inputs);
  else
    check_apart(M::name, outputs, queries, inputs);
}

template <Memory M, bool in_place = false>
void check_outputs(const M& m, const StateOf<M>& state, const WriteSequence<M>& inputs,
                   const ReadSequence<M>& queries, const OutSequence<M>& outputs, Index steps) {
  check_outputs<M, in_place>(m, inputs, queries, outputs, steps);
  check_outside(M::name, state, outputs, queries, inputs);
}

template <Memory M>
void run_steps(const M& m, StateOf<M>& state, const WriteSequence<M>& inputs,
               const ReadSequence<M>& queries, const OutSequence<M>& outputs, Index steps) {
  const auto write_extents = m.signature().write();
  const auto read_extents = m.signature().read();
  const auto output_extents = m.signature().out();
  for (Index t = 0; t < steps; ++t)
    run_step(m, state, token_at<WriteToken<M>>(inputs, write_extents, t),
             token_at<ReadToken<M>>(queries, read_extents, t),
             token_at<OutToken<M>>(outputs, output_extents, t));
}

// A scan of arguments that are checked.
template <Memory M>
void run_scan(const M& m, StateOf<M>& state, const WriteSequence<M>& inputs,
              const ReadSequence<M>& queries, const OutSequence<M>& outputs, Index steps) {
  if constexpr (CustomScan<M>)
    if (steps > 1) return scan_implementation(m).scan(state, inputs, queries, outputs);
  run_steps(m, state, inputs, queries, outputs, steps);
}

}  // namespace detail

/// Writes and reads the tokens of a sequence in order. `state` continues from where it is. The
/// outputs may be the values, in place, for rules of the kernels (Capabilities::in_place).
template <Memory M>
void scan(const M& m, StateOf<M>& state, WriteSequence<M> inputs, ReadSequence<M> queries,
          OutSequence<M> outputs) {
  const Index steps = detail::steps_of(inputs, m.signature().write());
  detail::check_scan(m, state, inputs, queries, steps);
  detail::check_outputs<M, true>(m, state, inputs, queries, outputs, steps);
  detail::run_scan(m, state, inputs, queries, outputs, steps);
}

/// As scan, in chunkwise form: `chunk` tokens at a time in matrix products. Costs
/// O(chunk·(d_k + d_v)) more multiplications per token than scan, most of them in matrix products.
template <Chunkable M>
void chunked_scan(const M& m, StateOf<M>& state, WriteSequence<M> inputs, ReadSequence<M> queries,
                  OutSequence<M> outputs, Index chunk = 64) {
  const auto signature = m.signature();
  const Index total = detail::steps_of(inputs, signature.write());
  if (chunk < 1)
    detail::throw_invalid(
        {"chunked_scan: chunk is ", std::to_string(chunk), ", expected at least 1"});
  detail::check_scan(m, state, inputs, queries, total);
  detail::check_outputs(m, state, inputs, queries, outputs, total);
  for (Index t = 0; t < total; t += chunk) {
    const Index count = std::min(chunk, total - t);
    m.chunk(state, detail::steps(inputs, signature.write(), t, count),
            detail::steps(queries, signature.read(), t, count),
            detail::steps(outputs, signature.out(), t, count));
  }
}

}  // namespace fw
