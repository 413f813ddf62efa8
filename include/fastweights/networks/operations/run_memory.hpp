#pragma once

#include <fastweights/any_memory/any_memory.hpp>
#include <fastweights/networks/builder.hpp>
#include <fastweights/networks/operations/memory_heads.hpp>

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// The heads of a memory. Its inputs are stacked heads, one value per member of the memory's
/// signature. A member may have fewer heads than others: consecutive heads share one then. If all
/// that is written has fewer heads than the queries, the queries share states, as in grouped-query
/// attention. A member of several columns a token is stacked column by column. If the state has
/// slow weights, they may be inputs too, after those that are read: constants.
template <class S> struct RunMemory final : Operation<S> {
  static constexpr bool takes_constants = true;  ///< slow weights

  AnyMemory<S> memory;              ///< the rule of every head
  std::vector<HeadMember> members;  ///< of the inputs, what is written first
  Index heads = 1, states = 1;      ///< of the queries, of the writes

  struct OwnTrace final : OperationTrace {
    std::vector<AnyCheckpoints<S>>
        checkpoints;                  ///< head after head of a sequence, then of the next
    std::vector<AnyState<S>> copies;  ///< of a state that queries share, one a thread
  };

  /// `inputs` are what is written and what is read with.
  RunMemory(AnyMemory<S> m, std::vector<HeadMember> inputs)
      : memory(std::move(m)), members(std::move(inputs)) {
    for (std::size_t i = 0; i < members.size(); ++i) {
      heads = std::max(heads, members[i].heads);
      if (i < writes()) states = heads;
    }
  }

  std::unique_ptr<StatePart> initial_state(Index sequences) const override {
    MemoryHeads<S> all;
    if (sequences > 0) all.heads.assign(std::size_t(states * sequences), memory.initial_state());
    return std::make_unique<StateOfPart<MemoryHeads<S>>>(std::move(all));
  }
  void check_state(const Forward<S>& run) const override {
    const auto& all = run.template own_state<MemoryHeads<S>>().heads;
    const Index expected = states * run.sequences;
    if (Index(all.size()) != expected)
      fw::detail::throw_mismatch(run.node.path, "the state", Index(all.size()), "heads", expected,
                                 "the layer");
    for (const AnyState<S>& state : all) {
      if (!memory.is_own(state))
        fw::detail::throw_invalid({run.node.path, ": the state is that of another network"});
      memory.check_capacity(state, run.steps());
    }
  }
  std::unique_ptr<OperationTrace> make_trace() const override {
    return std::make_unique<OwnTrace>();
  }

  void forward(const Forward<S>& run) const override {
    auto& state = run.template own_state<MemoryHeads<S>>();
    auto& trace = run.template own_trace<OwnTrace>();
    if (run.train) trace.checkpoints.resize(std::size_t(heads * run.sequences));
    const Index count = states * run.sequences;
    // A single token a sequence is too little work for threads.
    const Index threads = run.steps() > 1 ? std::min<Index>(Eigen::nbThreads(), count) : 1;
    trace.copies.resize(needs_copies(run) ? std::size_t(threads) : 0);
    for_each_head(threads, threads > 1, [&](Index thread) {
      HeadViews<const S> inputs(writes(), reads());
      for (Index i = count * thread / threads; i < count * (thread + 1) / threads; ++i)
        forward(run, state.heads[std::size_t(i)], i, trace, thread, inputs);
    });
  }

  void backward(const Backward<S>& run) const override {
    if (!memory.can().differentiable)
      fw::detail::throw_invalid({run.node.path, ": ", memory.name(), " has no gradients"});
    auto& checkpoints = run.template own_trace<OwnTrace>().checkpoints;
    AnyState<S> dstate = memory.zero_gradient();
    HeadViews<const S> inputs(writes(), reads());
    HeadViews<S> dinputs(writes(), reads());
    for (Index b = 0; b < run.sequences; ++b)
      for (Index h = 0; h < heads; ++h) {
        set_zero(dstate);
        set(inputs, run, run.values, h, b);
        set(dinputs, run, run.gradients, h, b);
        memory.backward(checkpoints.at(std::size_t(b * heads + h)), inputs.written(),
                        inputs.queries(), {output<const S>(run, run.gradients, h, b)}, dstate,
                        dinputs.written(), dinputs.queries());
        for_each_slow(run, run.gradients, dstate, h * states / heads,
                      [](const auto& dweights, auto given) { given += dweights; });
      }
  }

 private:
  std::size_t writes() const { return memory.written().size(); }
  std::size_t reads() const { return memory.read_with().size(); }

  bool writes_apart(const Forward<S>& run) const {
    return memory.can().pure_read && !memory.can().reads_first && !run.train && run.steps() == 1;
  }
  bool chunks(const Forward<S>& run) const {
    return memory.can().shares_chunks && !run.train && run.steps() > 1;
  }
  bool needs_copies(const Forward<S>& run) const {
    return heads > states && !writes_apart(run) && !chunks(run);
  }

  // One state, with all of its queries.
  void forward(const Forward<S>& run, AnyState<S>& own, Index at, OwnTrace& trace, Index thread,
               HeadViews<const S>& inputs) const {
    const Index b = at / states, i = at % states;
    for_each_slow(run, run.values, own, i,
                  [](auto weights, const auto& given) { weights = given; });
    if (chunks(run)) return shared_chunk(run, own, i, b);
    if (heads == states) return scan(run, own, i, b, trace, inputs);
    if (writes_apart(run)) return write_and_read(run, own, i, b, inputs);
    scan_copies(run, own, trace.copies[std::size_t(thread)], i, b, trace, inputs);
  }

  void shared_chunk(const Forward<S>& run, AnyState<S>& own, Index i, Index b) const {
    const auto shared = std::size_t(heads / states);
    std::vector<HeadViews<const S>> inputs(shared, HeadViews<const S>(writes(), reads()));
    std::vector<AnyView<S>> outputs(shared);
    std::vector<AnyViews<const S>> queries(shared);
    std::vector<AnyViews<S>> given(shared);
    for (std::size_t n = 0; n < shared; ++n) {
      const Index h = i * Index(shared) + Index(n);
      set(inputs[n], run, run.values, h, b);
      outputs[n] = output<S>(run, run.values, h, b);
      queries[n] = inputs[n].queries();
      given[n] = std::span<const AnyView<S>>(&outputs[n], 1);
    }
    memory.shared_chunk(own, inputs[0].written(), queries, given);
  }

  // The last query of a state scans it; those before it scan a copy.
  void scan_copies(const Forward<S>& run, AnyState<S>& own, AnyState<S>& copy, Index i, Index b,
                   OwnTrace& trace, HeadViews<const S>& inputs) const {
    const Index shared = heads / states, last = (i + 1) * shared - 1;
    for (Index h = i * shared; h < last; ++h) {
      copy = own;  // reuses the storage
      scan(run, copy, h, b, trace, inputs);
    }
    scan(run, own, last, b, trace, inputs);
  }

  // One token: written once, and read with every query.
  void write_and_read(const Forward<S>& run, AnyState<S>& own, Index i, Index b,
                      HeadViews<const S>& inputs) const {
    const Index shared = heads / states, first = i * shared;
    for (Index h = first; h < first + shared; ++h) {
      set(inputs, run, run.values, h, b);
      if (h == first) memory.write(own, inputs.written());
      memory.read(std::as_const(own), inputs.queries(), {output<S>(run, run.values, h, b)});
    }
  }

  void scan(const Forward<S>& run, AnyState<S>& state, Index h, Index b, OwnTrace& trace,
            HeadViews<const S>& inputs) const {
    set(inputs, run, run.values, h, b);
    const AnyView<S> y = output<S>(run, run.values, h, b);
    if (run.train && memory.can().differentiable)
      memory.scan(state, inputs.written(), inputs.queries(), {y},
                  trace.checkpoints[std::size_t(b * heads + h)]);
    else
      memory.scan(state, inputs.written(), inputs.queries(), {y});
  }

  // Calls f(entries of a slow weight, their part of the input) for every slow weight of the state.
  template <class F>
  void for_each_slow(const Forward<S>& run, std::vector<Matrix<S>>& buffers,
                     const AnyState<S>& state, Index i, const F& f) const {
    std::size_t at = members.size();
    if (run.node.in.size() == at) return;
    for_each_slow_weight(state, [&](const fw::detail::Leaf& leaf) {
      const Slice& slice = run.node.in[at++];
      const Index n = leaf.size(), count = slice.rows / n;
      f(leaf.entries<S>().matrix(),
        buffers[slice.buffer].col(0).segment(slice.first + i * count / states * n, n));
    });
  }

  template <class T>
  void set(HeadViews<T>& views, const Forward<S>& run, std::vector<Matrix<S>>& buffers, Index h,
           Index b) const {
    for (std::size_t i = 0; i < members.size(); ++i)
      views[i] = part<T>(run, buffers, run.node.in[i], members[i], h, b);
  }
  template <class T>
  AnyView<T> output(const Forward<S>& run, std::vector<Matrix<S>>& buffers, Index h,
                    Index b) const {
    return part<T>(run, buffers, run.node.out, {heads, run.node.out.rows / heads, 1}, h, b);
  }
  // The part of a value that belongs to a head of a sequence.
  template <class T>
  AnyView<T> part(const Forward<S>& run, std::vector<Matrix<S>>& buffers, const Slice& slice,
                  const HeadMember& member, Index h, Index b) const {
    Matrix<S>& buffer = buffers[slice.buffer];
    const Index steps = run.steps(), own = h * member.heads / heads;
    return {buffer.data() + slice.first + own * member.rows + b * steps * buffer.rows(),
            member.rows, steps * member.width, buffer.rows() / member.width};
  }
};

}  // namespace fw::networks
