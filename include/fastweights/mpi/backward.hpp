#pragma once

#include <fastweights/mpi/scan.hpp>

namespace fw::inline FASTWEIGHTS_ABI::mpi {

/// The gradients of mpi::scan with `checkpoints`, over the same ranks, heads and tokens. The
/// gradient of the states goes along the ranks in the other direction, head after head, whatever
/// method the scan had: H + P − 1 backward passes of one head on one rank instead of H P.
///
/// In: `ds`, the gradients of the final states, on the last rank; those of others are only buffers.
/// Out: the gradients of the states before the tokens of this rank, so the first rank has those of
/// the initial states. dinputs and dqueries accumulate. A rank sends the bytes of H states to the
/// rank before. The results are those of one backward pass after another in one process.
///
/// Throws std::invalid_argument on every rank if an argument of any rank does not fit; nothing is
/// changed then.
template <Differentiable M>
void backward(const M& m, std::span<Checkpoints<M>> checkpoints, WriteSequence<M> inputs,
              ReadSequence<M> queries, OutGradSequence<M> dy, std::span<StateOf<M>> ds,
              WriteGradSequence<M> dinputs, ReadGradSequence<M> dqueries, MPI_Comm comm) {
  const Ranks ranks(comm);
  const auto heads = static_cast<Index>(ds.size());
  const auto signature = m.signature();
  const Index total = fw::detail::steps_of(inputs, signature.write());
  const auto check = [&] {
    fw::detail::check_size<Dynamic>("mpi::backward", "the number of states", heads);
    if (std::ssize(checkpoints) != heads)
      fw::detail::throw_mismatch(M::name, "mpi::backward", std::ssize(checkpoints), "checkpoints",
                                 heads, "the gradients of states");
    for (const auto& each : checkpoints) {
      if (each.states.empty() || each.steps * heads != total)
        fw::detail::throw_mismatch(M::name, "the sequence", total / heads, "steps",
                                   std::max<Index>(0, each.steps),
                                   "the forward pass of these checkpoints");
      fw::check_state(m, each.states[0]);
    }
    for (const auto& each : ds) fw::detail::check_state(M::name, each, m.state_extents());
    fw::detail::check_sequence(M::name, inputs, signature.write(), total);
    fw::detail::check_sequence(M::name, queries, signature.read(), total);
    fw::detail::check_output_sizes(m, queries, dy, total);
    fw::detail::check_sequence(M::name, dinputs, signature.write(), total);
    fw::detail::check_sequence(M::name, dqueries, signature.read(), total);
    fw::detail::check_chunks(M::name, dinputs, signature.write(),
                             fw::detail::check_chunks(M::name, inputs, signature.write()));
    fw::detail::check_chunks(M::name, dqueries, signature.read(),
                             fw::detail::check_chunks(M::name, queries, signature.read()));
    fw::detail::check_gradients_apart<M>(inputs, queries, dy, ds, dinputs, dqueries);
  };
  ranks.agree(
      "mpi::backward",
      {{"the memory", detail::shapes_of_memory(m)}, {"the number of gradients of states", heads}},
      check);
  const Index steps = total / heads;
  detail::chain(ranks, ds, ranks.after(), ranks.before(), [&](Index h) {
    const auto i = static_cast<std::size_t>(h);
    fw::backward(m, checkpoints[i], detail::part_of(inputs, signature.write(), h, steps),
                 detail::part_of(queries, signature.read(), h, steps),
                 detail::part_of(dy, signature.out(), h, steps), ds[i],
                 detail::part_of(dinputs, signature.write(), h, steps),
                 detail::part_of(dqueries, signature.read(), h, steps));
  });
}

}  // namespace fw::mpi
