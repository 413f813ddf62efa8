#pragma once

#include <fastweights/algorithms/heads.hpp>
#include <fastweights/algorithms/scan.hpp>
#include <fastweights/core/owned.hpp>
#include <fastweights/mpi/states.hpp>

/// \file
/// A scan by heads: every rank gets all tokens of its heads, scans them, and sends the outputs
/// back. No rank waits for another one's scan, but all tokens are moved.

namespace fw::inline FASTWEIGHTS_ABI::mpi::detail {

// The tokens of a head on one rank.
template <Memory M> struct HeadPart {
  OwnedWrites<M> inputs;
  OwnedReads<M> queries;
  static constexpr auto names = fw::names("inputs", "queries");

  HeadPart(const M& m, Index steps)
      : inputs(owned_sequence<OwnedWrites<M>>(m.signature().write(), steps, typename M::Scalar(0))),
        queries(owned_sequence<OwnedReads<M>>(m.signature().read(), steps, typename M::Scalar(0))) {
  }
};
// What comes back.
template <Memory M> struct HeadResult {
  OwnedOuts<M> outputs;
  StateOf<M> state;
  static constexpr auto names = fw::names("outputs", "state");

  HeadResult(const M& m, Index steps)
      : outputs(owned_sequence<OwnedOuts<M>>(m.signature().out(), steps, typename M::Scalar(0))),
        state(fw::initial_state(m)) {}
};

// Copies the members of one record to those of another, views or matrices.
template <class From, class To> void copy_members(const From& from, To& to) {
  const auto copy = [&]<std::size_t... I>(std::index_sequence<I...>) {
    ((std::get<I>(members(to)) = std::get<I>(members(from))), ...);
  };
  copy(std::make_index_sequence<member_count<From>>{});
}

template <Memory M> class HeadExchange {
 public:
  HeadExchange(const Ranks& ranks, const M& m, std::span<StateOf<M>> states, Index steps)
      : ranks_(ranks), m_(m), states_(states), outbox_(ranks), steps_(at(ranks.size())) {
    const long long mine = steps;
    check(MPI_Allgather(&mine, 1, MPI_LONG_LONG, steps_.data(), 1, MPI_LONG_LONG, ranks.comm()),
          "MPI_Allgather");
  }

  // part(h): the inputs and queries of this rank's tokens of head h; outputs(h): where theirs go.
  template <class Part, class Outputs> void scan(const Part& part, const Outputs& outputs) {
    send_parts(part);
    const auto first = first_head(ranks_.rank()), last = first_head(ranks_.rank() + 1);
    std::vector<std::vector<HeadPart<M>>> parts;
    for (Index h = first; h < last; ++h) parts.push_back(receive_parts(h));
    std::vector<std::vector<HeadResult<M>>> results(parts.size());
    for_each_head(last - first, true,
                  [&](Index i) { results[at(i)] = scan_head(first + i, parts[at(i)]); });
    for (auto& of_head : results)
      for (int r = 0; r < ranks_.size(); ++r) outbox_.send(fw::detail::object(of_head[at(r)]), r);
    HeadResult<M> result(m_, steps_[at(ranks_.rank())]);
    for (Index h = 0; h < std::ssize(states_); ++h) {
      receive(ranks_, fw::detail::object(result), owner(h), buffer_);
      states_[at(h)] = result.state;
      auto to = outputs(h);
      copy_members(result.outputs, to);
    }
    outbox_.wait();
  }

 private:
  static std::size_t at(Index i) { return static_cast<std::size_t>(i); }
  // Heads are shared in order, as evenly as they can be.
  Index first_head(int rank) const { return rank * std::ssize(states_) / ranks_.size(); }
  int owner(Index head) const {
    int rank = 0;
    while (first_head(rank + 1) <= head) ++rank;
    return rank;
  }

  template <class Part> void send_parts(const Part& part) {
    HeadPart<M> mine(m_, steps_[at(ranks_.rank())]);
    for (Index h = 0; h < std::ssize(states_); ++h) {
      if (ranks_.is_first()) outbox_.send(fw::detail::object(states_[at(h)]), owner(h));
      const auto [inputs, queries] = part(h);
      copy_members(inputs, mine.inputs);
      copy_members(queries, mine.queries);
      outbox_.send(fw::detail::object(mine), owner(h));
      outbox_.progress();
    }
  }
  std::vector<HeadPart<M>> receive_parts(Index h) {
    std::vector<HeadPart<M>> parts;
    for (int r = 0; r < ranks_.size(); ++r) {
      if (r == 0) receive(ranks_, fw::detail::object(states_[at(h)]), 0, buffer_);
      parts.emplace_back(m_, steps_[at(r)]);
      receive(ranks_, fw::detail::object(parts.back()), r, buffer_);
      outbox_.progress();
    }
    return parts;
  }
  // The parts one after another.
  std::vector<HeadResult<M>> scan_head(Index h, std::vector<HeadPart<M>>& parts) {
    std::vector<HeadResult<M>> results;
    StateOf<M>& state = states_[at(h)];
    for (std::size_t r = 0; r < parts.size(); ++r) {
      HeadResult<M>& result = results.emplace_back(m_, steps_[r]);
      fw::detail::run_scan(m_, state, view<WriteSequence<M>>(parts[r].inputs),
                           view<ReadSequence<M>>(parts[r].queries),
                           view<OutSequence<M>>(result.outputs), Index(steps_[r]));
      result.state = state;
    }
    return results;
  }

  const Ranks& ranks_;
  const M& m_;
  std::span<StateOf<M>> states_;
  Outbox outbox_;
  std::vector<long long> steps_;  // of every rank
  std::vector<std::byte> buffer_;
};

}  // namespace fw::mpi::detail
