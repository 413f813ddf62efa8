#pragma once

#include <fastweights/algorithms/backward.hpp>
#include <fastweights/algorithms/parallel_scan.hpp>
#include <fastweights/mpi/chain.hpp>
#include <fastweights/mpi/cost.hpp>
#include <fastweights/mpi/exchange.hpp>

/// \file
/// One sequence over the processes (ranks) of MPI. Every rank holds some consecutive tokens of it,
/// the first rank the first ones. Ranks may hold different numbers of tokens, or none.
///
///     std::vector<fw::StateOf<M>> states(heads, fw::initial_state(memory));
///     fw::mpi::scan(memory, std::span(states), {K, V, beta}, {Q}, {Y}, MPI_COMM_WORLD);

namespace fw::inline FASTWEIGHTS_ABI::mpi {

namespace detail {

// The tokens of head h.
template <class R, class E> R part_of(const R& sequences, const E& extents, Index h, Index steps) {
  return fw::detail::steps(sequences, extents, h * steps, steps);
}

template <class Extents> bool has_chunks(Extents extents) {
  bool found = false;
  for_each_member([&](std::string_view, const MemberExtent& e) { found = found || e.chunks; },
                  extents);
  return found;
}

// The sizes of a state: "W 6x4, length".
template <class Extents> std::string shapes_of_extents(const Extents& extents) {
  std::string text;
  for_each_named_leaf(
      [&]<class E>(const std::string& name, const E& e) {
        text += (text.empty() ? "" : ", ") + name;
        if constexpr (std::is_same_v<E, MemberExtent>)
          text += " " + std::to_string(e.rows) + "x" + std::to_string(e.width);
      },
      "", extents);
  return text;
}

// The sizes of a record of the signature: "key 4x1, value 6x1".
template <class Extents> std::string sizes_text(Extents extents) {
  std::string text;
  for_each_member(
      [&](std::string_view name, const MemberExtent& e) {
        text += (text.empty() ? "" : ", ") + std::string(name) + " " + std::to_string(e.rows) +
                "x" + std::to_string(e.width);
      },
      extents);
  return text;
}

// The sizes on which a memory's messages depend.
template <Memory M> std::string shapes_of_memory(const M& m) {
  const auto signature = m.signature();
  std::string text(M::name);
  text += " of " + std::to_string(sizeof(typename M::Scalar)) + " bytes a number, state " +
          shapes_of_extents(m.state_extents());
  text += ", inputs " + sizes_text(signature.write());
  return text + ", queries " + sizes_text(signature.read());
}

template <Memory M> void check_method(const M& m, Method method) {
  if (method == Method::segments && !Mergeable<M>)
    fw::detail::throw_invalid({M::name, ": mpi::scan by segments, the memory is not mergeable"});
  if (method == Method::heads && has_chunks(m.signature().write()))
    fw::detail::throw_invalid({M::name, ": mpi::scan by heads, the memory takes chunks"});
  if (method == Method::heads && fw::detail::state_grows(m))
    fw::detail::throw_invalid({M::name, ": mpi::scan by heads, the state of the memory grows"});
}

// Gives the number of tokens of a head. `others` are further checks.
template <Memory M, class Others>
Index check_scan(const Ranks& ranks, const M& m, std::span<StateOf<M>> states,
                 const WriteSequence<M>& inputs, const ReadSequence<M>& queries,
                 const OutSequence<M>& outputs, Method method, const Others& others) {
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
    fw::detail::check_outputs(m, inputs, queries, outputs, total);
    for (const auto& state : states)
      fw::detail::check_outside(M::name, state, outputs, queries, inputs);
    check_method(m, method);
    others();
  };
  ranks.agree("mpi::scan",
              {{"the memory", shapes_of_memory(m)},
               {"the number of states", heads},
               {"the method", static_cast<Index>(method)}},
              check);
  return total / heads;
}

// The first rank scans while the others compose their writes. Then the states go along the ranks,
// head after head.
template <Mergeable M, class ScanHead>
void scan_by_segments(const Ranks& ranks, const M& m, std::span<StateOf<M>> states,
                      const WriteSequence<M>& inputs, Index steps, const ScanHead& scan_head) {
  std::vector<std::byte> buffer;
  const auto heads = static_cast<Index>(states.size());
  if (ranks.is_first()) {
    parallel_for(heads, true, scan_head);
    return send_states<StateOf<M>>(ranks, states, ranks.after(), buffer);
  }
  std::vector<typename M::Segment> writes(ranks.is_last() ? 0 : states.size(), m.empty_segment());
  parallel_for(std::ssize(writes), true, [&](Index h) {
    fw::detail::extend(m, writes[static_cast<std::size_t>(h)],
                       part_of(inputs, m.signature().write(), h, steps), steps);
  });
  for (std::size_t h = 0; h < states.size(); ++h) {
    receive(ranks, fw::detail::object(states[h]), ranks.before(), buffer);
    if (ranks.is_last()) continue;
    StateOf<M> after = states[h];
    m.apply(writes[h], after);
    send(ranks, fw::detail::object(after), ranks.after(), buffer);
  }
  parallel_for(heads, true, scan_head);
}

template <Memory M>
void scan_by_heads(const Ranks& ranks, const M& m, std::span<StateOf<M>> states,
                   const WriteSequence<M>& inputs, const ReadSequence<M>& queries,
                   const OutSequence<M>& outputs, Index steps) {
  const auto signature = m.signature();
  HeadExchange<M>(ranks, m, states, steps)
      .scan([&](Index h) { return part_of(inputs, signature.write(), h, steps); },
            [&](Index h) { return part_of(queries, signature.read(), h, steps); },
            [&](Index h) { return part_of(outputs, signature.out(), h, steps); });
}

// The work, equal on all ranks. A token takes six flops for every number of the state.
template <Memory M>
Method choose(const Ranks& ranks, const M& m, std::span<const StateOf<M>> states, Index steps,
              const Machine& machine, bool may_exchange) {
  const auto signature = m.signature();
  if (ranks.size() == 1) return Method::chain;
  long long longest = steps;
  check(MPI_Allreduce(MPI_IN_PLACE, &longest, 1, MPI_LONG_LONG, MPI_MAX, ranks.comm()),
        "MPI_Allreduce");
  using S = typename M::Scalar;
  const auto state = static_cast<double>(bytes_of(states[0]));
  const Work work{.heads = static_cast<double>(states.size()),
                  .ranks = static_cast<double>(ranks.size()),
                  .tokens = static_cast<double>(longest),
                  .token_flops = 6 * state / sizeof(S),
                  .token_bytes = static_cast<double>(sizeof(S)) *
                                 static_cast<double>(numbers_of_token(signature.write()) +
                                                     numbers_of_token(signature.read()) +
                                                     numbers_of_token(signature.out())),
                  .state_bytes = state};
  int method = static_cast<int>(
      fastest(work, machine, Mergeable<M>,
              may_exchange && !has_chunks(signature.write()) && !fw::detail::state_grows(m)));
  // The ranks may have measured different machines.
  check(MPI_Bcast(&method, 1, MPI_INT, 0, ranks.comm()), "MPI_Bcast");
  return static_cast<Method>(method);
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
  if (method == Method::chain)
    return chain(ranks, states, ranks.before(), ranks.after(), scan_head);
  if constexpr (Mergeable<M>) scan_by_segments(ranks, m, states, inputs, steps, scan_head);
}

}  // namespace detail

/// Scans H sequences, or the H heads of one, over the ranks of `comm`. Like the inputs of layers,
/// sequences are concatenated: head h has columns h T … h T + T − 1, for the T tokens of this rank.
/// In: the state of every head before the first token, on the first rank; those of others are only
/// buffers. Out: the states after the tokens of this rank, so the last rank has the final ones.
///
/// All ranks of `comm` call this together, with the same memory, H and method. Method::automatic is
/// the fastest one for the first rank's `machine` by mpi::seconds. A rank sends the bytes of H
/// states to the next one; by Method::heads its tokens of the heads of others, and their outputs
/// come back. By Method::chain and Method::heads the results are those of one scan after another in
/// one process, to the bits; by Method::segments those of one process that applies a Segment per
/// rank, as fw::parallel_scan does. They do not depend on the MPI library or on the number of
/// threads. With OpenMP the heads of a rank run in parallel, and only the calling thread calls MPI:
/// MPI_Init_thread with MPI_THREAD_FUNNELED is enough.
///
/// Throws std::invalid_argument on every rank if an argument of any rank does not fit, or the
/// method is not for this memory; no state is changed then. A rank that ends later, by a full
/// memory with WhenFull::refuse say, has to end the program: others wait for its states. By
/// Method::heads all ranks throw then. A rank that is killed in the middle ends all ranks at once,
/// because mpiexec of Open MPI and of MPICH ends a job that loses a process. Where the launcher
/// does not, the others wait for ever; no rank can tell a dead one from a slow one.
template <Memory M>
void scan(const M& m, std::span<StateOf<M>> states, WriteSequence<M> inputs,
          ReadSequence<M> queries, OutSequence<M> outputs, MPI_Comm comm,
          Method method = Method::automatic, const Machine& machine = {}) {
  const Ranks ranks(comm);
  const Index steps = detail::check_scan(ranks, m, states, inputs, queries, outputs, method, [] {});
  if (method == Method::automatic)
    method = detail::choose<M>(ranks, m, states, steps, machine, true);
  if (method == Method::heads)
    return detail::scan_by_heads(ranks, m, states, inputs, queries, outputs, steps);
  detail::scan_together(ranks, m, states, inputs, queries, outputs, steps, method,
                        [&](std::size_t h, const auto& in, const auto& q, const auto& out) {
                          fw::detail::run_scan(m, states[h], in, q, out, steps);
                        });
}

/// Scans, and stores in checkpoints[h] what mpi::backward needs, for all methods but
/// Method::heads.
template <Differentiable M>
void scan(const M& m, std::span<StateOf<M>> states, WriteSequence<M> inputs,
          ReadSequence<M> queries, OutSequence<M> outputs, std::span<Checkpoints<M>> checkpoints,
          MPI_Comm comm, Method method = Method::automatic, const Machine& machine = {}) {
  const Ranks ranks(comm);
  const Index steps = detail::check_scan(ranks, m, states, inputs, queries, outputs, method, [&] {
    if (method == Method::heads)
      fw::detail::throw_invalid({M::name, ": mpi::scan by heads, which keeps no checkpoints"});
    if (checkpoints.size() != states.size())
      fw::detail::throw_mismatch(M::name, "mpi::scan", std::ssize(checkpoints), "checkpoints",
                                 std::ssize(states), "the states");
  });
  if (method == Method::automatic)
    method = detail::choose<M>(ranks, m, states, steps, machine, false);
  detail::scan_together(ranks, m, states, inputs, queries, outputs, steps, method,
                        [&](std::size_t h, const auto& in, const auto& q, const auto& out) {
                          fw::scan(m, states[h], in, q, out, checkpoints[h]);
                        });
}

}  // namespace fw::mpi
