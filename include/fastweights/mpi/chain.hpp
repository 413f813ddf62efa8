#pragma once

#include <algorithm>
#include <fastweights/math/parallel_for.hpp>
#include <fastweights/mpi/states.hpp>
#include <span>

/// \file
/// States on their way along the ranks, head after head: while a rank works on a head, the rank
/// behind it works on the head before. P ranks with H heads take as long as H + P − 1 heads on one
/// of them, instead of H P.

namespace fw::inline FASTWEIGHTS_ABI::mpi::detail {

/// Receives the state of every head from a rank, calls work(head), and sends the state on; `from`
/// and `to` may be MPI_PROC_NULL. As many heads at a time as there are threads. A large message
/// waits for its receiver: MPI moves it only while both ranks are in a call.
template <class State, class Work>
void chain(const Ranks& ranks, std::span<State> states, int from, int to, const Work& work) {
  const auto group = static_cast<std::size_t>(fw::detail::heads_at_once(true));
  std::vector<std::byte> buffer;
  for (std::size_t first = 0; first < states.size(); first += group) {
    const auto heads = states.subspan(first, std::min(group, states.size() - first));
    receive_states(ranks, heads, from, buffer);
    parallel_for(std::ssize(heads), true, [&](Index h) { work(static_cast<Index>(first) + h); });
    send_states<State>(ranks, heads, to, buffer);
  }
}

}  // namespace fw::mpi::detail
