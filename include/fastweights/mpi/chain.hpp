#pragma once

#include <algorithm>
#include <cstring>
#include <fastweights/algorithms/heads.hpp>
#include <fastweights/core/leaves.hpp>
#include <fastweights/mpi/ranks.hpp>
#include <span>
#include <vector>

#ifdef _OPENMP
#include <omp.h>
#endif

/// \file
/// States on their way along the ranks, head after head: while a rank works on a head, the rank
/// behind it works on the head before. P ranks with H heads take as long as H + P − 1 heads on one
/// of them, instead of H P.

namespace fw::inline FASTWEIGHTS_ABI::mpi::detail {

inline int threads() {
#ifdef _OPENMP
  return omp_in_parallel() ? 1 : omp_get_max_threads();
#else
  return 1;
#endif
}

// Calls f(address, bytes) for the numbers of a state.
template <class State, class F> void for_each_block(State& state, const F& f) {
  const fw::detail::Object object = fw::detail::object(state);
  fw::detail::visit_leaves(&object, 1, [&](const fw::detail::Leaf* leaf, const auto&) {
    f(static_cast<std::byte*>(leaf->data), leaf->size() * static_cast<Index>(leaf->width));
  });
}

template <class State> Index bytes_of(const State& state) {
  Index sum = 0;
  for_each_block(state, [&](const std::byte*, Index bytes) { sum += bytes; });
  return sum;
}

// A message per state: ranks may differ in how many they have at hand.
template <class State>
void send_states(const Ranks& ranks, std::span<const State> states, int to,
                 std::vector<std::byte>& buffer) {
  if (to == MPI_PROC_NULL) return;
  for (const State& state : states) {
    buffer.clear();
    for_each_block(state, [&](const std::byte* from, Index bytes) {
      buffer.insert(buffer.end(), from, from + bytes);
    });
    ranks.send(buffer.data(), static_cast<Index>(buffer.size()), to);
  }
}

template <class State>
void receive_states(const Ranks& ranks, std::span<State> states, int from,
                    std::vector<std::byte>& buffer) {
  if (from == MPI_PROC_NULL) return;
  for (State& state : states) {
    buffer.resize(static_cast<std::size_t>(bytes_of(state)));
    ranks.receive(buffer.data(), static_cast<Index>(buffer.size()), from);
    const std::byte* next = buffer.data();
    for_each_block(state, [&](std::byte* to, Index bytes) {
      std::memcpy(to, next, static_cast<std::size_t>(bytes));
      next += bytes;
    });
  }
}

/// Receives the state of every head from a rank, calls work(head), and sends the state on; `from`
/// and `to` may be MPI_PROC_NULL. As many heads at a time as there are threads. A large message
/// waits for its receiver: MPI moves it only while both ranks are in a call.
template <class State, class Work>
void chain(const Ranks& ranks, std::span<State> states, int from, int to, const Work& work) {
  const auto group = static_cast<std::size_t>(threads());
  std::vector<std::byte> buffer;
  for (std::size_t first = 0; first < states.size(); first += group) {
    const auto heads = states.subspan(first, std::min(group, states.size() - first));
    receive_states(ranks, heads, from, buffer);
    for_each_head(std::ssize(heads), true, [&](Index h) { work(static_cast<Index>(first) + h); });
    send_states<State>(ranks, heads, to, buffer);
  }
}

}  // namespace fw::mpi::detail
