#pragma once

#include <fastweights/algorithms/backward.hpp>
#include <fastweights/algorithms/parallel_scan.hpp>
#include <fastweights/mpi/chain.hpp>

/// \file
/// One sequence over the processes (ranks) of MPI. Every rank holds some consecutive tokens of it,
/// the first rank the first ones. Ranks may hold different numbers of tokens, or none.
///
///     std::vector<fw::StateOf<M>> states(heads, fw::initial_state(memory));
///     fw::mpi::scan(memory, std::span(states), {K, V, beta}, {Q}, {Y}, MPI_COMM_WORLD);

namespace fw::inline FASTWEIGHTS_ABI::mpi {

/// How the ranks work at the same time. Times are in units of a scan of one head on one rank, for H
/// heads and P ranks with equally many tokens and one thread each; one rank alone would take H P.
enum class Method {
  automatic,  ///< the faster one by these times
  chain,      ///< head after head along the ranks, for any memory: H + P − 1
  segments    ///< ranks compose their writes, then scan, for mergeable memories: 5/2 H
};

namespace detail {

constexpr bool prefers_segments(Index heads, Index ranks) { return 3 * heads < 2 * (ranks - 1); }

// The tokens of head h.
template <class R, class E> R part_of(const R& sequences, const E& extents, Index h, Index steps) {
  return fw::detail::steps(sequences, extents, h * steps, steps);
}

// Gives the number of tokens of a head. `others` are further checks.
template <Memory M, class Others>
Index check_scan(const Ranks& ranks, const M& m, std::span<StateOf<M>> states,
                 const WriteSequence<M>& inputs, const ReadSequence<M>& queries,
                 const OutSequence<M>& outputs, const Others& others) {
  const auto heads = static_cast<Index>(states.size());
  const Index total = fw::detail::steps_of(inputs, m.signature().write());
  const auto check = [&] {
    fw::detail::check_size<Dynamic>("mpi::scan", "the number of states", heads);
    if (total % heads != 0)
      fw::detail::throw_invalid({M::name, ": ", std::to_string(total), " tokens for ",
                                 std::to_string(heads), " states, expected equally many for each"});
    for (const auto& state : states) fw::check_state(m, state);
    fw::detail::check_sequence(M::name, inputs, m.signature().write(), total);
    fw::detail::check_sequence(M::name, queries, m.signature().read(), total);
    fw::detail::check_chunks(M::name, inputs, m.signature().write());
    fw::detail::check_outputs(m, queries, outputs, total);
    others();
  };
  ranks.agree("mpi::scan", "the number of bytes of all states",
              states.empty() ? 0 : heads * bytes_of(states[0]), check);
  return total / heads;
}

// The first rank scans while the others compose their writes. Then the states go along the ranks.
template <Mergeable M, class ScanHead>
void scan_by_segments(const Ranks& ranks, const M& m, std::span<StateOf<M>> states,
                      const WriteSequence<M>& inputs, Index steps, const ScanHead& scan_head) {
  std::vector<std::byte> buffer;
  const auto heads = static_cast<Index>(states.size());
  if (ranks.is_first()) {
    for_each_head(heads, true, scan_head);
    return send_states<StateOf<M>>(ranks, states, ranks.after(), buffer);
  }
  std::vector<typename M::Segment> writes(ranks.is_last() ? 0 : states.size(), m.empty_segment());
  for_each_head(std::ssize(writes), true, [&](Index h) {
    fw::detail::extend(m, writes[static_cast<std::size_t>(h)],
                       part_of(inputs, m.signature().write(), h, steps), steps);
  });
  receive_states(ranks, states, ranks.before(), buffer);
  if (!ranks.is_last()) {
    std::vector<StateOf<M>> after(states.begin(), states.end());
    for_each_head(heads, true, [&](Index h) {
      const auto i = static_cast<std::size_t>(h);
      m.apply(writes[i], after[i]);
    });
    send_states<StateOf<M>>(ranks, after, ranks.after(), buffer);
  }
  for_each_head(heads, true, scan_head);
}

// Calls scan_part(head, inputs, queries, outputs) for every head once its state is known.
template <Memory M, class ScanPart>
void scan_together(const Ranks& ranks, const M& m, std::span<StateOf<M>> states,
                   const WriteSequence<M>& inputs, const ReadSequence<M>& queries,
                   const OutSequence<M>& outputs, Index steps, Method method,
                   const ScanPart& scan_part) {
  const auto signature = m.signature();
  const auto scan_head = [&](Index h) {
    scan_part(static_cast<std::size_t>(h), part_of(inputs, signature.write(), h, steps),
              part_of(queries, signature.read(), h, steps),
              part_of(outputs, signature.out(), h, steps));
  };
  if (method == Method::automatic)
    method = Mergeable<M> && prefers_segments(std::ssize(states), ranks.size()) ? Method::segments
                                                                                : Method::chain;
  if (method == Method::chain)
    return chain(ranks, states, ranks.before(), ranks.after(), scan_head);
  if constexpr (Mergeable<M>)
    scan_by_segments(ranks, m, states, inputs, steps, scan_head);
  else
    fw::detail::throw_invalid({M::name, ": mpi::scan by segments, the memory is not mergeable"});
}

}  // namespace detail

/// Scans H sequences, or the H heads of one, over the ranks of `comm`. Like the inputs of layers,
/// sequences are concatenated: head h has columns h T … h T + T − 1, for the T tokens of this rank.
/// In: the state of every head before the first token, on the first rank; those of others are only
/// buffers. Out: the states after the tokens of this rank, so the last rank has the final ones.
///
/// All ranks of `comm` call this together, with the same memory, H and method. A rank sends the
/// bytes of H states to the next one. By Method::chain the results are those of one scan after
/// another in one process, to the bits; by Method::segments those of one process that applies a
/// Segment per rank, as fw::parallel_scan does. They do not depend on the MPI library or on the
/// number of threads. With OpenMP the heads of a rank run in parallel, and only the calling thread
/// calls MPI: MPI_Init_thread with MPI_THREAD_FUNNELED is enough.
///
/// Throws std::invalid_argument on every rank if an argument of any rank does not fit; no state is
/// changed then. A rank that ends later, by a full memory with WhenFull::refuse say, has to end the
/// program: others wait for its states.
template <Memory M>
void scan(const M& m, std::span<StateOf<M>> states, WriteSequence<M> inputs,
          ReadSequence<M> queries, OutSequence<M> outputs, MPI_Comm comm,
          Method method = Method::automatic) {
  const Ranks ranks(comm);
  const Index steps = detail::check_scan(ranks, m, states, inputs, queries, outputs, [] {});
  detail::scan_together(ranks, m, states, inputs, queries, outputs, steps, method,
                        [&](std::size_t h, const auto& in, const auto& q, const auto& out) {
                          fw::detail::run_scan(m, states[h], in, q, out, steps);
                        });
}

/// The same, and stores in checkpoints[h] what mpi::backward needs.
template <Differentiable M>
void scan(const M& m, std::span<StateOf<M>> states, WriteSequence<M> inputs,
          ReadSequence<M> queries, OutSequence<M> outputs, std::span<Checkpoints<M>> checkpoints,
          MPI_Comm comm, Method method = Method::automatic) {
  const Ranks ranks(comm);
  const Index steps = detail::check_scan(ranks, m, states, inputs, queries, outputs, [&] {
    if (checkpoints.size() != states.size())
      fw::detail::throw_mismatch(M::name, "mpi::scan", std::ssize(checkpoints), "checkpoints",
                                 std::ssize(states), "the states");
  });
  detail::scan_together(ranks, m, states, inputs, queries, outputs, steps, method,
                        [&](std::size_t h, const auto& in, const auto& q, const auto& out) {
                          fw::scan(m, states[h], in, q, out, checkpoints[h]);
                        });
}

}  // namespace fw::mpi
