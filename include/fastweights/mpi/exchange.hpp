#pragma once

#include <fastweights/algorithms/scan.hpp>
#include <fastweights/math/parallel_for.hpp>
#include <fastweights/mpi/messages.hpp>
#include <optional>

/// \file
/// A scan by heads: every rank gets all tokens of its heads, scans them, and sends the outputs
/// back. No rank waits for another one's scan, but all tokens are moved. An error of a memory ends
/// the call on all ranks, after the exchange.

namespace fw::inline FASTWEIGHTS_ABI::mpi::detail {

template <class Extents> Index numbers_of_token(Extents extents) {
  Index sum = 0;
  for_each_member([&](std::string_view, const MemberExtent& e) { sum += e.rows * e.width; },
                  extents);
  return sum;
}

// Views of contiguous numbers, which `data` then points behind.
template <class R, class S, class E> R views_of(S*& data, const E& extents, Index steps) {
  return make_record<R>(extents, [&]<class View>(const MemberExtent& e) {
    const View view(data, e.rows, e.width * steps, e.rows);
    data += view.size();
    return view;
  });
}

template <Memory M> class HeadExchange {
 public:
  HeadExchange(const Ranks& ranks, const M& m, std::span<StateOf<M>> states, Index steps)
      : ranks_(ranks), m_(m), states_(states), steps_(at(ranks.size())), sent_(ranks), got_(ranks) {
    const long long mine = steps;
    check(MPI_Allgather(&mine, 1, MPI_LONG_LONG, steps_.data(), 1, MPI_LONG_LONG, ranks.comm()),
          "MPI_Allgather");
  }

  // inputs(h), queries(h), outputs(h): views of this rank's tokens of head h.
  template <class Inputs, class Queries, class Outputs>
  void scan(const Inputs& inputs, const Queries& queries, const Outputs& outputs) {
    // Receives first: MPI moves what is expected fastest.
    for (Index h = first_head(ranks_.rank()); h < first_head(ranks_.rank() + 1); ++h)
      expect_head(h, inputs(h), queries(h), outputs(h));
    for (Index h = 0; h < heads(); ++h)
      if (owner(h) != ranks_.rank()) expect_results(h, outputs(h));
    for (Index h = 0; h < heads(); ++h) send_part(h, inputs(h), queries(h));
    const Index group = fw::detail::heads_at_once(true);
    for (auto first = heads_.begin(); first != heads_.end();) {
      std::vector<Head*> some;
      for (; first != heads_.end() && std::ssize(some) < group; ++first) some.push_back(&*first);
      for (Head* head : some) head->messages.wait();
      parallel_for(std::ssize(some), true,
                   [&](Index i) { some[at(i)]->error.emplace([&] { scan_head(*some[at(i)]); }); });
      for (Head* head : some) send_back(*head);
    }
    got_.wait();
    sent_.wait();
    ranks_.agree("mpi::scan", {{"the number of heads", heads()}}, [&] {
      for (const Head& head : heads_) head.error->rethrow();
    });
  }

 private:
  using S = typename M::Scalar;
  using Array = Eigen::Array<S, Eigen::Dynamic, 1>;

  // The tokens of a head on one rank, and the state after them.
  struct Part {
    WriteSequence<M> inputs;
    ReadSequence<M> queries;
    OutSequence<M> outputs;
    Index steps;
    StateOf<M> after;
  };
  struct Head {
    Index index;
    StateOf<M> state;
    std::vector<Part> parts;     // of the ranks in order
    std::vector<Array> numbers;  // of other ranks' tokens
    Messages messages;
    std::optional<FirstError> error;

    Head(const Ranks& ranks, Index h, const StateOf<M>& initial)
        : index(h), state(initial), messages(ranks) {}
  };

  static std::size_t at(Index i) { return static_cast<std::size_t>(i); }
  Index heads() const { return std::ssize(states_); }
  // Heads are shared in order, as evenly as they can be.
  Index first_head(int rank) const { return rank * heads() / ranks_.size(); }
  int owner(Index head) const {
    int rank = 0;
    while (first_head(rank + 1) <= head) ++rank;
    return rank;
  }

  void expect_head(Index h, const WriteSequence<M>& inputs, const ReadSequence<M>& queries,
                   const OutSequence<M>& outputs) {
    const auto signature = m_.signature();
    Head& head = heads_.emplace_back(ranks_, h, states_[at(h)]);
    if (!ranks_.is_first()) receive_record(head.messages, fw::detail::object(head.state), 0);
    for (int r = 0; r < ranks_.size(); ++r) {
      const auto steps = static_cast<Index>(steps_[at(r)]);
      if (r == ranks_.rank()) {
        head.parts.push_back({inputs, queries, outputs, steps, head.state});
        continue;
      }
      S* next = head.numbers
                    .emplace_back(steps * (numbers_of_token(signature.write()) +
                                           numbers_of_token(signature.read()) +
                                           numbers_of_token(signature.out())))
                    .data();
      const auto writes = views_of<WriteGradSequence<M>>(next, signature.write(), steps);
      const auto reads = views_of<ReadGradSequence<M>>(next, signature.read(), steps);
      receive_views(head.messages, writes, r);
      receive_views(head.messages, reads, r);
      head.parts.push_back({view<WriteSequence<M>>(writes), view<ReadSequence<M>>(reads),
                            views_of<OutSequence<M>>(next, signature.out(), steps), steps,
                            head.state});
    }
  }
  void expect_results(Index h, const OutSequence<M>& outputs) {
    receive_views(got_, outputs, owner(h));
    receive_record(got_, fw::detail::object(states_[at(h)]), owner(h));
  }
  void send_part(Index h, const WriteSequence<M>& inputs, const ReadSequence<M>& queries) {
    if (owner(h) == ranks_.rank()) return;
    if (ranks_.is_first()) send_record(sent_, fw::detail::object(states_[at(h)]), owner(h));
    send_views(sent_, inputs, owner(h));
    send_views(sent_, queries, owner(h));
  }
  // The parts one after another.
  void scan_head(Head& head) const {
    for (Part& part : head.parts) {
      fw::detail::run_scan(m_, head.state, part.inputs, part.queries, part.outputs, part.steps);
      part.after = head.state;
    }
  }
  void send_back(const Head& head) {
    for (int r = 0; r < ranks_.size(); ++r) {
      const Part& part = head.parts[at(r)];
      if (r == ranks_.rank()) {
        states_[at(head.index)] = part.after;
        continue;
      }
      send_views(sent_, part.outputs, r);
      send_record(sent_, fw::detail::object(part.after), r);
    }
  }

  const Ranks& ranks_;
  const M& m_;
  std::span<StateOf<M>> states_;
  std::vector<long long> steps_;  // of every rank
  std::list<Head> heads_;         // of this rank
  Messages sent_, got_;
};

}  // namespace fw::mpi::detail
