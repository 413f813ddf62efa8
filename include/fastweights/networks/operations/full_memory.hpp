#pragma once

#include <fastweights/algorithms/backward.hpp>
#include <fastweights/algorithms/scan.hpp>
#include <fastweights/networks/operations/memory.hpp>

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// A memory that can be read with all queries after all writes, with gradients.
template <class M>
concept ReadsAfterWrites = PureRead<M> && StepDifferentiable<M>;

/// Heads of a memory that are read after all writes of a pass: see full_memory(). The inputs are
/// what is written and then the queries, heads stacked.
template <ReadsAfterWrites M> struct ReadFully final : Operation<typename M::Scalar> {
  static constexpr bool sees_position = true;
  using S = typename M::Scalar;
  using State = HeadStates<StateOf<M>>;
  M memory;
  Index heads;

  struct OwnTrace final : OperationTrace {
    std::vector<Checkpoints<M>> checkpoints;  // in the order of the states
    std::vector<StateOf<M>> final_states;     // which are read
    Matrix<S> zeros;                          // the gradient of the scan's outputs
  };

  ReadFully(M m, Index h) : memory(std::move(m)), heads(h) {}

  std::unique_ptr<StatePart> initial_state(Index sequences) const override {
    return std::make_unique<StateOfPart<State>>(
        State{{std::size_t(heads * sequences), fw::initial_state(memory)}});
  }
  bool needs_whole_sequences() const override { return true; }
  void check_state(const Forward<S>& run) const override {
    const auto& all = run.template own_state<State>().heads;
    if (Index(all.size()) != heads * run.sequences())
      fw::detail::throw_mismatch(run.node.path, "the state", Index(all.size()), "heads",
                                 heads * run.sequences(), "the sequences");
    for (const StateOf<M>& each : all) fw::check_state(memory, each);
  }
  std::unique_ptr<OperationTrace> make_trace() const override {
    return std::make_unique<OwnTrace>();
  }

  void forward(const Forward<S>& run) const override {
    auto& trace = run.template own_trace<OwnTrace>();
    auto& states = run.template own_state<State>().heads;
    if (run.train) trace.checkpoints.resize(states.size());
    for_each_head_of(run, [&](Index h, Index b, std::size_t i) {
      const auto queries = record<ReadSequence<M>>(run, run.values, h, b, writes);
      const OutSequence<M> out = output<OutSequence<M>>(run, run.values, h, b);
      const auto written = record<WriteSequence<M>>(run, run.values, h, b, 0);
      if (run.train)
        fw::scan(memory, states[i], written, queries, out, trace.checkpoints[i]);
      else
        fw::scan(memory, states[i], written, queries, out);
      const auto sizes = memory.signature();
      for (Index t = 0; t < run.streams.steps(b); ++t)
        memory.read(std::as_const(states[i]),
                    fw::detail::token_at<ReadToken<M>>(queries, sizes.read(), t),
                    fw::detail::token_at<OutToken<M>>(out, sizes.out(), t));
    });
    if (run.train) trace.final_states = states;
  }

  void backward(const Backward<S>& run) const override {
    auto& trace = run.template own_trace<OwnTrace>();
    const auto sizes = memory.signature();
    trace.zeros.setZero(rows_of(sizes.out()), run.streams.most_steps());
    for_each_head_of(run, [&](Index h, Index b, std::size_t i) {
      const auto queries = record<ReadSequence<M>>(run, run.values, h, b, writes);
      const auto dqueries = record<ReadGradSequence<M>>(run, run.gradients, h, b, writes);
      const auto dy = output<OutGradSequence<M>>(run, run.gradients, h, b);
      StateOf<M> dstate = zero_gradient(memory);
      for (Index t = 0; t < run.streams.steps(b); ++t)
        memory.read_vjp(trace.final_states[i],
                        fw::detail::token_at<ReadToken<M>>(queries, sizes.read(), t),
                        fw::detail::token_at<OutGradToken<M>>(dy, sizes.out(), t), dstate,
                        fw::detail::token_at<ReadGradToken<M>>(dqueries, sizes.read(), t));
      const OutGradSequence<M> none{
          {trace.zeros.data(), trace.zeros.rows(), run.streams.steps(b), trace.zeros.rows()}};
      fw::backward(memory, trace.checkpoints[i], record<WriteSequence<M>>(run, run.values, h, b, 0),
                   queries, none, dstate, record<WriteGradSequence<M>>(run, run.gradients, h, b, 0),
                   dqueries);
    });
  }

 private:
  static constexpr std::size_t writes = member_count<WriteSequence<M>>;

  template <class Sizes> static Index rows_of(const Sizes& sizes) {
    return std::get<0>(members(sizes)).rows;
  }
  template <class F> void for_each_head_of(const Forward<S>& run, const F& f) const {
    for (Index b = 0; b < run.sequences(); ++b)
      for (Index h = 0; h < heads && run.streams.steps(b) > 0; ++h)
        f(h, b, std::size_t(b * heads + h));
  }

  // The rows of head h in a buffer, for the tokens of sequence b.
  template <class View>
  View view(const Forward<S>& run, std::vector<Matrix<S>>& buffers, const Slice& slice, Index h,
            Index b) const {
    Matrix<S>& buffer = buffers[slice.buffer];
    const Index rows = slice.rows / heads, stride = buffer.rows();
    return View(buffer.data() + slice.first + h * rows + run.streams.first(b) * stride, rows,
                run.streams.steps(b), stride);
  }
  // Views of the inputs from number `first` on.
  template <class Sequences>
  Sequences record(const Forward<S>& run, std::vector<Matrix<S>>& buffers, Index h, Index b,
                   std::size_t first) const {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return Sequences{view<member_t<Sequences, I>>(run, buffers, run.node.in[first + I], h, b)...};
    }
    (std::make_index_sequence<member_count<Sequences>>());
  }
  template <class Sequences>
  Sequences output(const Forward<S>& run, std::vector<Matrix<S>>& buffers, Index h, Index b) const {
    return {view<member_t<Sequences, 0>>(run, buffers, run.node.out, h, b)};
  }
};

/// Writes the first values and reads with the second, as memory() does, but every token reads the
/// writes of all tokens: those of the pass, which must contain the whole sequence, and those before
/// it. Every member has one row for each head. Throws std::invalid_argument when a size does not
/// fit.
template <ReadsAfterWrites M, class S = typename M::Scalar>
Value<S> full_memory(M rule, const std::vector<Value<S>>& written,
                     const std::vector<Value<S>>& queries,
                     const std::string& state_name = "memory") {
  Builder<S>& builder = *written.at(0).builder;
  const std::string path = builder.path(state_name);
  const AnyMemory<S> any(rule);
  std::vector<HeadMember> members;
  detail::add_head_members(path, any.written(), written, builder, members);
  detail::add_head_members(path, any.read_with(), queries, builder, members);
  for (const HeadMember& each : members)
    if (each.heads != members[0].heads || each.width != 1)
      fw::detail::throw_invalid({path, ": ", std::to_string(each.heads), " heads of ",
                                 std::to_string(each.width), " columns, expected ",
                                 std::to_string(members[0].heads), " of 1"});
  std::vector<Value<S>> in = written;
  in.insert(in.end(), queries.begin(), queries.end());
  const Index heads = members[0].heads, rows = any.given()[0].rows;
  return builder.add(ReadFully<M>(std::move(rule), heads), heads * rows, std::move(in), {},
                     state_name);
}

}  // namespace fw::networks
