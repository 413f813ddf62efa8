#pragma once

#include <fastweights/any_memory/any_memory.hpp>
#include <fastweights/networks/builder.hpp>
#include <fastweights/networks/operations/learned_state.hpp>
#include <fastweights/networks/operations/memory_heads.hpp>
#include <numeric>
#include <optional>

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// The heads of a memory. Its inputs are stacked heads, one value per member of the memory's
/// signature. A member may have fewer heads than others: consecutive heads share one then. If all
/// that is written has fewer heads than the queries, the queries share states, as in grouped-query
/// attention. A member of several columns a token is stacked column by column. If the state has
/// slow weights, they may be inputs too, after those that are read: constants.
template <class S> struct RunMemory final : Operation<S> {
  static constexpr bool takes_constants = true;  ///< what is learned of the states

  AnyMemory<S> memory;                      ///< the rule of every head
  std::vector<HeadMember> members;          ///< of the inputs, what is written first
  HeadMember output;                        ///< what a read gives
  Index heads = 1, states = 1;              ///< of the queries, of the writes
  Learned learned = Learned::slow_weights;  ///< by the inputs behind the members
  bool reads_after_writes = false;          ///< every read sees all writes: see full_memory()

  /// The arguments of one call, whose sizes stay if the next pass has as many tokens.
  struct Call {
    const Node<S>* node = nullptr;  ///< of the pass that they are for
    HeadViews<const S> written, queries;
    HeadViews<S> output;
  };
  /// Buffers for the gradients of one head after the other. Each thread has its own.
  struct HeadGradients {
    explicit HeadGradients(AnyState<S> zero) : dstate(std::move(zero)) {}
    AnyState<S> dstate;                ///< of the state that the head has
    std::optional<AnyState<S>> after;  ///< of that after all tokens, if anybody asks
    Call call;
    HeadViews<const S> dy;
    Matrix<S> no_dy;  ///< of the scan's outputs, if the reads come after all writes
    AnyView<const S> no_dy_view;
    HeadViews<S> dwritten, dqueries;
  };
  struct OwnTrace final : OperationTrace {
    std::vector<Call> calls;                     ///< one a thread
    std::vector<AnyState<S>> copies;             ///< of a state that queries share, one a thread
    std::vector<AnyCheckpoints<S>> checkpoints;  ///< head after head of a sequence, then the next
    std::vector<AnyState<S>> final_states;       ///< in this order, if reads come after all writes
    std::vector<HeadGradients> gradients;        ///< backward's, one a thread
    LearnedGradients<S> dlearned;                ///< head after head, as checkpoints
    std::vector<Matrix<S>> repeated;             ///< see set_repeated
  };

  /// `inputs` are what is written and what is read with.
  RunMemory(AnyMemory<S> m, std::vector<HeadMember> inputs)
      : memory(std::move(m)), members(std::move(inputs)) {
    for (std::size_t i = 0; i < members.size(); ++i) {
      heads = std::max(heads, members[i].heads);
      if (i < writes()) states = heads;
    }
    const MemberExtent given = fw::detail::per_token(memory.given()[0].extent());
    output = {heads, given.rows, given.width};
    for (HeadMember& each : members) each.sharing = heads / each.heads;
  }

  std::unique_ptr<StatePart> initial_state(Index sequences) const override {
    HeadStates<AnyState<S>> all;
    if (sequences > 0) all.heads.assign(std::size_t(states * sequences), memory.initial_state());
    return std::make_unique<StateOfPart<HeadStates<AnyState<S>>>>(std::move(all));
  }
  std::unique_ptr<StatePart> state_gradient(Index sequences) const override {
    if (!memory.can().differentiable) return nullptr;
    HeadStates<AnyState<S>> all;
    if (sequences > 0) all.heads.assign(std::size_t(states * sequences), memory.zero_gradient());
    return std::make_unique<StateOfPart<HeadStates<AnyState<S>>>>(std::move(all));
  }
  void check_state(const Forward<S>& run) const override {
    const auto& all = heads_of(run);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!memory.is_own(all[i]))
        fw::detail::throw_invalid({run.node.path, ": the state is that of another network"});
      const Index b = Index(i) / states;
      memory.check_capacity(all[i], run.streams.steps(b) + run.streams.later(b));
    }
  }
  bool needs_whole_sequences() const override { return reads_after_writes; }
  Index takes_back() const override {
    return reads_after_writes ? 0 : memory.can().roll_back_limit;
  }
  void take_back(const Forward<S>& run, Index b, Index tokens) const override {
    auto& all = heads_of(run);
    for (Index i = b * states; i < (b + 1) * states; ++i)
      memory.roll_back(all[std::size_t(i)], tokens);
  }
  std::unique_ptr<OperationTrace> make_trace() const override {
    return std::make_unique<OwnTrace>();
  }

  void forward(const Forward<S>& run) const override {
    auto& state = run.template own_state<HeadStates<AnyState<S>>>();
    auto& trace = run.template own_trace<OwnTrace>();
    if (run.train) trace.checkpoints.resize(std::size_t(heads * run.sequences()));
    if (run.train && reads_after_writes) trace.final_states.resize(trace.checkpoints.size());
    const Index count = states * run.sequences();
    // A single token a sequence is too little work for threads.
    const Index most = run.streams.most_steps();
    const Index threads = most > 1 ? std::min<Index>(Eigen::nbThreads(), count) : 1;
    trace.copies.resize(needs_copies(run, most) ? std::size_t(threads) : 0);
    trace.calls.resize(std::size_t(threads));
    parallel_for(threads, threads > 1, [&](Index thread) {
      const Index end = count * (thread + 1) / threads;
      Index at = count * thread / threads, b = at / states, i = at % states;
      start(trace.calls[std::size_t(thread)], run);
      for (; at < end; ++at) {
        if (run.streams.steps(b) > 0)
          forward(run, state.heads[std::size_t(at)], i, b, trace, thread);
        if (++i == states) i = 0, ++b;
      }
    });
  }

  void backward(const Backward<S>& run) const override {
    if (!memory.can().differentiable)
      fw::detail::throw_invalid({run.node.path, ": ", memory.name(), " has no gradients",
                                 Eigen::NumTraits<S>::IsComplex ? " in complex numbers" : ""});
    auto& trace = run.template own_trace<OwnTrace>();
    std::vector<Matrix<S>>& repeated = trace.repeated;
    set_repeated(run, repeated);
    const Index groups = separate_groups(), count = groups * run.sequences();
    const Index threads = std::min<Index>(Eigen::nbThreads(), count);
    while (Index(trace.gradients.size()) < threads)
      trace.gradients.emplace_back(memory.zero_gradient());
    if (learns(run))
      trace.dlearned.resize(trace.gradients[0].dstate, learned, heads * run.sequences());
    parallel_for(threads, threads > 1, [&](Index thread) {
      HeadGradients& own = trace.gradients[std::size_t(thread)];
      start(own.call, run);
      add_inputs(own.dwritten, own.dqueries, run, run.gradients, &repeated);
      add_output(own.dy, run, run.gradients);
      if (reads_after_writes)
        own.no_dy.setZero(output.rows, run.streams.most_steps() * output.width);
      const Index end = count * (thread + 1) / threads, each = heads / groups;
      for (Index at = count * thread / threads; at < end; ++at)
        for (Index h = at % groups * each, last = h + each; h < last; ++h)
          backward(run, h, at / groups, own);
    });
    for (std::size_t i = 0; i < members.size(); ++i)
      if (repeated[i].size() > 0) run.gradients[run.node.in[i].buffer] += repeated[i];
    if (learns(run)) add_learned_gradients(run, trace);
  }

 private:
  std::size_t writes() const { return memory.written().size(); }
  // True if inputs give what is learned.
  bool learns(const Forward<S>& run) const { return run.node.in.size() > members.size(); }
  std::vector<AnyState<S>>& heads_of(const Forward<S>& run) const {
    auto& all = run.template own_state<HeadStates<AnyState<S>>>().heads;
    const Index expected = states * run.sequences();
    if (Index(all.size()) != expected)
      fw::detail::throw_mismatch(run.node.path, "the state", Index(all.size()), "heads", expected,
                                 "the layer");
    return all;
  }
  bool writes_apart(const Forward<S>& run, Index steps) const {
    return memory.can().pure_read && !memory.can().reads_first && !run.train && steps == 1;
  }
  bool chunks(const Forward<S>& run, Index steps) const {
    return memory.can().shares_chunks && !run.train && steps > 1 && !reads_after_writes;
  }
  bool needs_copies(const Forward<S>& run, Index most_steps) const {
    // A sequence of one token may stand beside longer ones.
    return heads > states &&
           (!writes_apart(run, 1) || (most_steps > 1 && !chunks(run, most_steps)));
  }

  // The number of equal groups of heads that share no key, value or query with another group.
  Index separate_groups() const {
    Index groups = heads;
    for (const HeadMember& each : members) groups = std::gcd(groups, each.heads);
    return groups;
  }

  void backward(const Backward<S>& run, Index h, Index b, HeadGradients& own) const {
    if (run.streams.steps(b) == 0) return;
    auto& trace = run.template own_trace<OwnTrace>();
    const Index at = b * heads + h;
    AnyState<S>* const asked = start_state_gradient(run, h, b, own);
    move(run, h, b, own.call.written, own.call.queries, own.dy, own.dwritten, own.dqueries);
    AnyViews<const S> dy = own.dy;
    if (reads_after_writes) dy = reads_backward(run, trace.final_states[std::size_t(at)], b, own);
    memory.backward(trace.checkpoints.at(std::size_t(at)), own.call.written, own.call.queries, dy,
                    own.dstate, own.dwritten, own.dqueries);
    if (asked != nullptr) add_gradient(*asked, own.dstate);
    if (learns(run)) trace.dlearned.keep(at, own.dstate, learned);
    if (asked != nullptr) clear_learned_inputs(run, *asked, b);
  }

  // The reads of a head whose views are in place. Gives the gradient of the scan's outputs: none.
  AnyViews<const S> reads_backward(const Backward<S>& run, const AnyState<S>& state, Index b,
                                   HeadGradients& own) const {
    memory.reads_backward(state, own.call.queries, own.dy, own.dstate, own.dqueries);
    own.no_dy_view = {own.no_dy.data(), output.rows, run.streams.steps(b) * output.width,
                      output.rows};
    return std::span<const AnyView<const S>>(&own.no_dy_view, 1);
  }

  // In one order, so that the bits do not depend on the number of threads.
  void add_learned_gradients(const Backward<S>& run, const OwnTrace& trace) const {
    for (Index at = 0; at < heads * run.sequences(); ++at) {
      const Index h = at % heads, b = at / heads;
      if (run.streams.steps(b) == 0) continue;
      const S* from = trace.dlearned.of(at);
      for_each_learned_input(run, run.gradients, trace.gradients[0].dstate, h * states / heads, b,
                             [&](const auto& weights, auto given) {
                               given += Eigen::Map<const Eigen::Matrix<S, Dynamic, 1>>(
                                   from, weights.size());
                               from += weights.size();
                             });
    }
  }

  // What the inputs overwrite has no gradient before.
  void clear_learned_inputs(const Forward<S>& run, const AnyState<S>& dstate, Index b) const {
    for_each_learned_input(run, run.values, dstate, 0, b,
                           [](auto dweights, const auto&) { dweights.setZero(); });
  }

  // The gradient of the state behind the tokens of head h, in own.dstate. Gives the place to which
  // that of the state before them is added, if anybody asks. Of the heads that share a state the
  // last one has scanned it, the others copies.
  AnyState<S>* start_state_gradient(const Backward<S>& run, Index h, Index b,
                                    HeadGradients& own) const {
    auto* const all = run.template own_state_gradient<HeadStates<AnyState<S>>>();
    const Index shared = heads / states, place = h % shared;
    AnyState<S>* const asked = all ? &all->heads[std::size_t(b * states + h / shared)] : nullptr;
    if (asked != nullptr && place == 0) {
      own.after = *asked;
      set_zero(*asked);
      // Those of later tokens are counted there, if inputs give them.
      if (learned == Learned::slow_weights && learns(run))
        for_each_learned(*own.after, learned, [](const fw::detail::Leaf& array, const auto&) {
          array.entries<S>().setZero();
        });
    }
    if (asked != nullptr && place == shared - 1)
      own.dstate = *own.after;
    else
      set_zero(own.dstate);
    return asked;
  }

  // State i of sequence b, with all of its queries.
  void forward(const Forward<S>& run, AnyState<S>& own, Index i, Index b, OwnTrace& trace,
               Index thread) const {
    Call& call = trace.calls[std::size_t(thread)];
    for_each_learned_input(run, run.values, own, i, b,
                           [](auto weights, const auto& given) { weights = given; });
    const Index steps = run.streams.steps(b);
    if (chunks(run, steps)) return shared_chunk(run, own, i, b, call);
    if (heads == states) return scan(run, own, i, b, trace, call);
    if (writes_apart(run, steps)) return write_and_read(run, own, i, b, call);
    scan_copies(run, own, trace.copies[std::size_t(thread)], i, b, trace, call);
  }

  void shared_chunk(const Forward<S>& run, AnyState<S>& own, Index i, Index b,
                    const Call& call) const {
    const auto shared = std::size_t(heads / states);
    std::vector<Call> calls(shared, call);
    std::vector<AnyViews<const S>> queries(shared);
    std::vector<AnyViews<S>> given(shared);
    for (std::size_t n = 0; n < shared; ++n) {
      move(run, i * Index(shared) + Index(n), b, calls[n].written, calls[n].queries,
           calls[n].output);
      queries[n] = calls[n].queries;
      given[n] = calls[n].output;
    }
    memory.shared_chunk(own, calls[0].written, queries, given);
  }

  // The last query of a state scans it; those before it scan a copy.
  void scan_copies(const Forward<S>& run, AnyState<S>& own, AnyState<S>& copy, Index i, Index b,
                   OwnTrace& trace, Call& call) const {
    const Index shared = heads / states, last = (i + 1) * shared - 1;
    for (Index h = i * shared; h < last; ++h) {
      copy = own;  // reuses the storage
      scan(run, copy, h, b, trace, call);
    }
    scan(run, own, last, b, trace, call);
  }

  // One token: written once, and read with every query.
  void write_and_read(const Forward<S>& run, AnyState<S>& own, Index i, Index b, Call& call) const {
    const Index shared = heads / states, first = i * shared;
    move(run, first, b, call.written);
    memory.write(own, call.written);
    for (Index h = first; h < first + shared; ++h) {
      move(run, h, b, call.queries, call.output);
      memory.read(std::as_const(own), call.queries, call.output);
    }
  }

  void scan(const Forward<S>& run, AnyState<S>& state, Index h, Index b, OwnTrace& trace,
            Call& call) const {
    move(run, h, b, call.written, call.queries, call.output);
    if (run.train && memory.can().differentiable)
      memory.scan(state, call.written, call.queries, call.output,
                  trace.checkpoints[std::size_t(b * heads + h)]);
    else
      memory.scan(state, call.written, call.queries, call.output);
    if (reads_after_writes) read_all(run, state, h, b, trace, call);
  }
  // Overwrites the outputs of head h, after all of its writes.
  void read_all(const Forward<S>& run, const AnyState<S>& state, Index h, Index b, OwnTrace& trace,
                Call& call) const {
    const Index first = run.streams.first(b), steps = run.streams.steps(b);
    for (Index t = first; t < first + steps; ++t) {
      call.queries.move_to(h, t, 1);
      call.output.move_to(h, t, 1);
      memory.read(state, call.queries, call.output);
    }
    if (run.train) trace.final_states[std::size_t(b * heads + h)] = state;
  }

  // Calls f(entries, their part of the input) for every array that is learned of state i of
  // sequence b.
  template <class F>
  void for_each_learned_input(const Forward<S>& run, std::vector<Matrix<S>>& buffers,
                              const AnyState<S>& state, Index i, Index b, const F& f) const {
    if (!learns(run)) return;
    std::size_t at = members.size();
    if (learned == Learned::first_state && run.streams.position(b) > 0) return;
    for_each_learned(state, learned, [&](const fw::detail::Leaf& leaf, const auto&) {
      const Slice& slice = run.node.in[at++];
      const Index n = leaf.size(), count = slice.rows / n;
      f(leaf.entries<S>().matrix(),
        buffers[slice.buffer].col(0).segment(slice.first + i * count / states * n, n));
    });
  }

  void start(Call& call, const Forward<S>& run) const {
    if (call.node == &run.node) return set_first(call, run);
    call.node = &run.node;
    add_inputs(call.written, call.queries, run, run.values);
    add_output(call.output, run, run.values);
  }
  void set_first(Call& call, const Forward<S>& run) const {
    const auto first = [&](const Slice& slice) {
      return run.values[slice.buffer].data() + slice.first;
    };
    const std::size_t count = writes();
    for (std::size_t i = 0; i < count; ++i) call.written.set_first(i, first(run.node.in[i]));
    for (std::size_t i = count; i < members.size(); ++i)
      call.queries.set_first(i - count, first(run.node.in[i]));
    call.output.set_first(0, first(run.node.out));
  }
  // Moves views to head h of sequence b.
  template <class... Views>
  static void move(const Forward<S>& run, Index h, Index b, Views&... views) {
    (views.move_to(h, run.streams.first(b), run.streams.steps(b)), ...);
  }
  // backward takes gradients that share no numbers. A member that reads what an earlier member
  // reads, such as a query that is the key, has a zero matrix of its own here, to be added at the
  // end.
  void set_repeated(const Backward<S>& run, std::vector<Matrix<S>>& own) const {
    own.resize(members.size());
    for (std::size_t i = 0; i < members.size(); ++i)
      for (std::size_t earlier = 0; earlier < i; ++earlier) {
        const Slice &a = run.node.in[i], &b = run.node.in[earlier];
        const Matrix<S>& buffer = run.gradients[a.buffer];
        if (a.buffer == b.buffer && a.first < b.first + b.rows && b.first < a.first + a.rows)
          own[i].setZero(buffer.rows(), buffer.cols());
      }
  }
  // `own` are matrices that some members have in place of their buffers.
  template <class T>
  void add_inputs(HeadViews<T>& written, HeadViews<T>& queries, const Forward<S>& run,
                  std::vector<Matrix<S>>& buffers, std::vector<Matrix<S>>* own = nullptr) const {
    written.clear();
    queries.clear();
    const std::size_t count = writes();
    for (std::size_t i = 0; i < members.size(); ++i) {
      const Slice& slice = run.node.in[i];
      const bool has_own = own != nullptr && (*own)[i].size() > 0;
      add(i < count ? written : queries, has_own ? (*own)[i] : buffers[slice.buffer], slice,
          members[i]);
    }
  }
  template <class T>
  void add_output(HeadViews<T>& views, const Forward<S>& run,
                  std::vector<Matrix<S>>& buffers) const {
    views.clear();
    add(views, buffers[run.node.out.buffer], run.node.out, output);
  }
  template <class T>
  static void add(HeadViews<T>& views, Matrix<S>& buffer, const Slice& slice,
                  const HeadMember& member) {
    const Index rows = buffer.rows();
    const AnyView<T> view(buffer.data() + slice.first, member.rows, 0,
                          member.width == 1 ? rows : rows / member.width);
    views.add(view, member.rows, rows, member.sharing, member.width);
  }
};

}  // namespace fw::networks
