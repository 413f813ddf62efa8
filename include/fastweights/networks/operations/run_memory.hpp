#pragma once

#include <fastweights/algorithms/backward.hpp>
#include <fastweights/algorithms/heads.hpp>
#include <fastweights/algorithms/step.hpp>
#include <fastweights/core/state.hpp>
#include <fastweights/layers/memory/head_inputs.hpp>
#include <fastweights/networks/builder.hpp>
#include <numeric>
#include <span>

namespace fw::inline FASTWEIGHTS_ABI::networks {

namespace detail {

using namespace fw::detail;

/// The states of the heads of one sequence, then of the next, …
template <class M> struct MemoryHeads {
  std::vector<StateOf<M>> heads;
  static constexpr auto names = fw::names("heads");
};

}  // namespace detail

/// A memory whose chunkwise form also reads with the queries of several heads that share a state.
template <class M>
concept SharedChunk = Chunkable<M> &&
    requires(const M& m, StateOf<M>& s, WriteSequence<M> inputs,
             std::span<const ReadSequence<M>> queries, std::span<OutSequence<M>> outs) {
  m.shared_chunk(s, inputs, queries, outs);
};

/// The heads of a memory. Its inputs are stacked heads, one value per member of the memory's
/// signature. A member may have fewer heads than others: consecutive heads share one then. If all
/// that is written has fewer heads than the queries, the queries share states, as in grouped-query
/// attention. A member of several columns a token is stacked column by column. If the state has
/// slow weights, they may be inputs too, after those that are read: constants.
template <class S, Memory M> struct RunMemory final : Operation<S> {
  static constexpr bool takes_constants = true;  ///< slow weights
  /// The sizes of what a head writes.
  using Writes = typename M::Signature::template Write<Extents>;
  /// The sizes of what a head reads with.
  using Reads = typename M::Signature::template Read<Extents>;
  /// The number of inputs of each kind.
  static constexpr std::size_t writes = member_count<Writes>, reads = member_count<Reads>;

  M memory;                         ///< the rule of every head
  std::vector<Index> member_heads;  ///< of the inputs, what is written first
  Index heads = 1, states = 1;      ///< of the queries, of the writes

  struct OwnTrace final : OperationTrace {
    std::vector<Checkpoints<M>> checkpoints;  ///< head after head of one sequence, then of the next
    std::vector<StateOf<M>> copies;           ///< of a state that queries share, one a thread
  };

  RunMemory(M m, std::vector<Index> counts) : memory(std::move(m)), member_heads(counts) {
    for (std::size_t i = 0; i < writes; ++i) states = std::max(states, counts[i]);
    heads = states;
    for (std::size_t i = writes; i < counts.size(); ++i) heads = std::max(heads, counts[i]);
  }

  std::unique_ptr<StatePart> initial_state(Index sequences) const override {
    detail::MemoryHeads<M> all;
    if (sequences > 0) all.heads.assign(std::size_t(states * sequences), fw::initial_state(memory));
    return std::make_unique<StateOfPart<detail::MemoryHeads<M>>>(std::move(all));
  }
  void check_state(const Forward<S>& run) const override {
    const auto& all = run.template own_state<detail::MemoryHeads<M>>().heads;
    fw::detail::check_heads(run.node.path, all, states * run.sequences, memory);
    fw::detail::check_capacities(all, memory, run.steps());
  }
  std::unique_ptr<OperationTrace> make_trace() const override {
    return std::make_unique<OwnTrace>();
  }

  void forward(const Forward<S>& run) const override {
    auto& state = run.template own_state<detail::MemoryHeads<M>>();
    auto& trace = run.template own_trace<OwnTrace>();
    if (run.train) trace.checkpoints.resize(std::size_t(heads * run.sequences));
    const Index count = states * run.sequences;
    // A single token a sequence is too little work for threads.
    const Index threads = run.steps() > 1 ? std::min<Index>(Eigen::nbThreads(), count) : 1;
    trace.copies.resize(needs_copies(run) ? std::size_t(threads) : 0);
    for_each_head(threads, threads > 1, [&](Index thread) {
      for (Index i = count * thread / threads; i < count * (thread + 1) / threads; ++i)
        forward(run, state.heads[std::size_t(i)], i, trace, thread);
    });
  }

  void backward(const Backward<S>& run) const override {
    if constexpr (Differentiable<M>) {
      auto& checkpoints = run.template own_trace<OwnTrace>().checkpoints;
      StateOf<M> dstate = checkpoints.at(0).states[0];
      for (Index b = 0; b < run.sequences; ++b)
        for (Index h = 0; h < heads; ++h) {
          set_zero(dstate);
          const auto& values = run.values;
          auto& gradients = run.gradients;
          fw::backward(memory, checkpoints[std::size_t(b * heads + h)],
                       inputs<WriteSequence<M>, 0>(run, values, h, b),
                       inputs<ReadSequence<M>, writes>(run, values, h, b),
                       output<OutGradSequence<M>>(run, gradients, h, b), dstate,
                       inputs<WriteGradSequence<M>, 0>(run, gradients, h, b),
                       inputs<ReadGradSequence<M>, writes>(run, gradients, h, b));
          for_each_slow(run, gradients, dstate, h * states / heads,
                        [](const auto& dweights, auto given) { given += dweights; });
        }
    } else {
      fw::detail::throw_invalid({run.node.path, ": ", M::name, " has no gradients"});
    }
  }

 private:
  static constexpr bool can_read_apart = PureRead<M> && !reads_first<M>();

  // Calls f(entries of the state's slow weights, their part of the input) for every slow weight.
  template <class F>
  void for_each_slow([[maybe_unused]] const Forward<S>& run,
                     [[maybe_unused]] std::vector<Matrix<S>>& buffers,
                     [[maybe_unused]] StateOf<M>& state, [[maybe_unused]] Index i,
                     [[maybe_unused]] const F& f) const {
    if constexpr (KeepsSlowWeights<M>) {
      std::size_t at = writes + reads;
      if (run.node.in.size() == at) return;
      for_each_leaf(
          [&](auto& leaf) {
            const auto entries = entries_of(leaf);
            const Slice& slice = run.node.in[at++];
            const Index n = entries.size(), count = slice.rows / n;
            f(entries,
              buffers[slice.buffer].col(0).segment(slice.first + i * count / states * n, n));
          },
          state.slow);
    }
  }
  static Eigen::Map<Eigen::Matrix<S, Dynamic, 1>> entries_of(S& number) { return {&number, 1}; }
  template <class A> static Eigen::Map<Eigen::Matrix<S, Dynamic, 1>> entries_of(A& array) {
    return {array.data(), array.size()};
  }

  bool writes_apart(const Forward<S>& run) const {
    return can_read_apart && !run.train && run.steps() == 1;
  }
  bool chunks(const Forward<S>& run) const {
    return SharedChunk<M> && !run.train && run.steps() > 1;
  }
  bool needs_copies(const Forward<S>& run) const {
    return heads > states && !writes_apart(run) && !chunks(run);
  }

  // One state, with all of its queries.
  void forward(const Forward<S>& run, StateOf<M>& own, Index at, OwnTrace& trace,
               Index thread) const {
    const Index b = at / states, i = at % states;
    for_each_slow(run, run.values, own, i,
                  [](auto weights, const auto& given) { weights = given; });
    if constexpr (SharedChunk<M>)
      if (chunks(run)) return shared_chunk(run, own, i, b);
    if (heads == states) return scan(run, own, i, b, trace);
    if constexpr (can_read_apart)
      if (writes_apart(run)) return write_and_read(run, own, i, b);
    scan_copies(run, own, trace.copies[std::size_t(thread)], i, b, trace);
  }

  void shared_chunk(const Forward<S>& run, StateOf<M>& own, Index i, Index b) const {
    const Index shared = heads / states;
    const auto written = inputs<WriteSequence<M>, 0>(run, run.values, i * shared, b);
    std::vector<ReadSequence<M>> queries;
    std::vector<OutSequence<M>> outs;
    for (Index h = i * shared; h < (i + 1) * shared; ++h) {
      queries.push_back(inputs<ReadSequence<M>, writes>(run, run.values, h, b));
      outs.push_back(output<OutSequence<M>>(run, run.values, h, b));
    }
    memory.shared_chunk(own, written, queries, outs);
  }

  // The last query of a state scans it; those before it scan a copy.
  void scan_copies(const Forward<S>& run, StateOf<M>& own, StateOf<M>& copy, Index i, Index b,
                   OwnTrace& trace) const {
    const Index shared = heads / states, last = (i + 1) * shared - 1;
    for (Index h = i * shared; h < last; ++h) {
      copy = own;  // reuses the storage
      scan(run, copy, h, b, trace);
    }
    scan(run, own, last, b, trace);
  }

  // One token: written once, and read with every query.
  void write_and_read(const Forward<S>& run, StateOf<M>& own, Index i, Index b) const {
    using fw::detail::token_at;
    const auto signature = memory.signature();
    const Index shared = heads / states;
    fw::write(memory, own,
              token_at<WriteToken<M>>(inputs<WriteSequence<M>, 0>(run, run.values, i * shared, b),
                                      signature.write(), 0));
    for (Index h = i * shared; h < (i + 1) * shared; ++h)
      fw::read(
          memory, std::as_const(own),
          token_at<ReadToken<M>>(inputs<ReadSequence<M>, writes>(run, run.values, h, b),
                                 signature.read(), 0),
          token_at<OutToken<M>>(output<OutSequence<M>>(run, run.values, h, b), signature.out(), 0));
  }

  void scan(const Forward<S>& run, StateOf<M>& state, Index h, Index b, OwnTrace& trace) const {
    const auto writes_of = inputs<WriteSequence<M>, 0>(run, run.values, h, b);
    const auto reads_of = inputs<ReadSequence<M>, writes>(run, run.values, h, b);
    const auto out = output<OutSequence<M>>(run, run.values, h, b);
    if constexpr (Differentiable<M>) {
      if (run.train) {
        fw::scan(memory, state, writes_of, reads_of, out,
                 trace.checkpoints[std::size_t(b * heads + h)]);
        return;
      }
    }
    fw::scan(memory, state, writes_of, reads_of, out);
  }

  // The part of a value that belongs to a head of a sequence; the value has `count` heads, and
  // `width` columns a token.
  template <class View, class Buffers>
  View part(Buffers& buffers, const Slice& slice, Index count, Index width, Index h, Index b,
            Index steps) const {
    auto& buffer = buffers[slice.buffer];
    const Index rows = slice.rows / (count * width), stride = buffer.rows() / width;
    return View(const_cast<S*>(buffer.data()) + slice.first + h * count / heads * rows +
                    b * steps * buffer.rows(),
                rows, steps * width, stride);
  }
  template <class Sequences, std::size_t first, class Buffers>
  Sequences inputs(const Forward<S>& run, Buffers& buffers, Index h, Index b) const {
    const auto signature = memory.signature();
    auto sizes = [&] {
      if constexpr (first == 0)
        return signature.write();
      else
        return signature.read();
    }();
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return Sequences{part<member_t<Sequences, I>>(
          buffers, run.node.in[first + I], member_heads[first + I],
          fw::detail::per_token(std::get<I>(members(sizes))).width, h, b, run.steps())...};
    }
    (std::make_index_sequence<member_count<Sequences>>{});
  }
  template <class Outs, class Buffers>
  Outs output(const Forward<S>& run, Buffers& buffers, Index h, Index b) const {
    return {part<member_t<Outs, 0>>(buffers, run.node.out, heads, 1, h, b, run.steps())};
  }
};

}  // namespace fw::networks
