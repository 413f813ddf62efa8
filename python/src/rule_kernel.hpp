#pragma once

#include <fastweights/algorithms/backward.hpp>
#include <fastweights/algorithms/heads.hpp>
#include <utility>

#include "kernel.hpp"

namespace fw::python {

/// The states of all streams of a memory.
template <class M> struct StreamsOf final : Streams {
  std::vector<StateOf<M>> each;

  Index count() const override { return static_cast<Index>(each.size()); }
  fw::detail::Object stream(Index i) override { return fw::detail::object(at(i)); }
  std::unique_ptr<Streams> copy() const override { return std::make_unique<StreamsOf>(*this); }
  StateOf<M>& at(Index i) { return each[static_cast<std::size_t>(i)]; }
  const StateOf<M>& at(Index i) const { return each[static_cast<std::size_t>(i)]; }
};

template <class M> struct TracesOf final : Traces { std::vector<fw::Checkpoints<M>> each; };

/// A record of views of one head, from `sequences` in the order of its members.
template <class R, std::size_t... I>
R head_record(const Sequences* sequences, [[maybe_unused]] const Member* members,
              [[maybe_unused]] Index batch, [[maybe_unused]] Index head,
              [[maybe_unused]] Index time, std::index_sequence<I...>) {
  const auto view = [&]<class View>(const Sequences& s, const Member& m) {
    using S = std::remove_pointer_t<decltype(std::declval<View&>().data())>;
    return View(s.head<S>(batch, head), m.rows, time, s.time_stride);
  };
  return R{view.template operator()<member_t<R, I>>(sequences[I], members[I])...};
}

/// A rule whose first state is all zeros.
template <class M> class RuleKernel final : public Kernel {
  static_assert(!requires(const M& m) { m.initial_state(); });
  using S = typename M::Scalar;
  using Owned = StreamsOf<M>;

 public:
  RuleKernel(M memory, std::string_view name, Index head_count) : memory_(std::move(memory)) {
    const auto signature = memory_.signature();
    rule = name;
    heads = head_count;
    dtype = nb::dtype<S>();
    add_members<ReadSequence<M>>(signature.read());
    add_members<WriteSequence<M>>(signature.write());
    output = {"output", signature.out().output.rows};
    state_entries = output.rows * inputs[0].rows;
  }

  std::unique_ptr<Streams> zeros(Index batch) const override {
    auto streams = std::make_unique<Owned>();
    streams->each.assign(static_cast<std::size_t>(batch * heads), zero_);
    return streams;
  }
  std::unique_ptr<Traces> traces() const override { return std::make_unique<TracesOf<M>>(); }

  fw::detail::Object first() const override { return fw::detail::object(zero_); }

  bool owns(const Streams& states) const override {
    const auto* owned = dynamic_cast<const Owned*>(&states);
    return owned && owned->count() % heads == 0 && !owned->each.empty() &&
           fw::detail::same_shapes(fw::detail::object(owned->each.front()), first());
  }

  void scan(Streams& states, const Call& call) const override {
    for_each_stream(call, [&](Index i, Index b, Index h) {
      fw::scan(memory_, of(states).at(i), writes(call, b, h), reads(call, b, h),
               outputs(call, b, h));
    });
  }
  void scan(Streams& states, const Call& call, Traces& traces) const override {
    auto& each = static_cast<TracesOf<M>&>(traces).each;
    each.resize(static_cast<std::size_t>(call.batch * heads));
    for_each_stream(call, [&](Index i, Index b, Index h) {
      fw::scan(memory_, of(states).at(i), writes(call, b, h), reads(call, b, h),
               outputs(call, b, h), each[static_cast<std::size_t>(i)]);
    });
  }
  void backward(const Streams& initial, const Call& call, Streams& gradient,
                std::span<const Sequences> dinputs) const override {
    backward_from(
        call, gradient,
        dinputs, [&](Index i) -> auto& { return static_cast<const Owned&>(initial).at(i); });
  }
  void backward(Traces& traces, const Call& call, Streams& gradient,
                std::span<const Sequences> dinputs) const override {
    backward_from(
        call, gradient, dinputs, [&](Index i) -> auto& {
          return static_cast<TracesOf<M>&>(traces).each[static_cast<std::size_t>(i)];
        });
  }

 private:
  static Owned& of(Streams& states) { return static_cast<Owned&>(states); }

  template <class R, class E> void add_members(const E& extents) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (inputs.push_back({R::names[I], std::get<I>(members(extents)).rows,
                         std::is_same_v<member_t<R, I>, ScalarSequence<const S>>}),
       ...);
    }
    (std::make_index_sequence<member_count<R>>{});
  }

  template <class F> void for_each_stream(const Call& call, const F& f) const {
    for_each_head(call.batch * heads, parallel(call), [&](Index i) { f(i, i / heads, i % heads); });
  }

  template <class Start>
  void backward_from(const Call& call, Streams& gradient, std::span<const Sequences> dinputs,
                     const Start& start) const {
    for_each_stream(call, [&](Index i, Index b, Index h) {
      fw::backward(
          memory_, start(i), writes(call, b, h), reads(call, b, h),
          record<OutGradSequence<M>>(&call.output, &output, call, b, h), of(gradient).at(i),
          record<WriteGradSequence<M>>(&dinputs[read_count], &inputs[read_count], call, b, h),
          record<ReadGradSequence<M>>(dinputs.data(), inputs.data(), call, b, h));
    });
  }

  static constexpr std::size_t read_count = member_count<ReadSequence<M>>;
  template <class R>
  static R record(const Sequences* sequences, const Member* members, const Call& call, Index b,
                  Index h) {
    return head_record<R>(sequences, members, b, h, call.time,
                          std::make_index_sequence<member_count<R>>{});
  }
  ReadSequence<M> reads(const Call& call, Index b, Index h) const {
    return record<ReadSequence<M>>(call.inputs.data(), inputs.data(), call, b, h);
  }
  WriteSequence<M> writes(const Call& call, Index b, Index h) const {
    return record<WriteSequence<M>>(&call.inputs[read_count], &inputs[read_count], call, b, h);
  }
  OutSequence<M> outputs(const Call& call, Index b, Index h) const {
    return record<OutSequence<M>>(&call.output, &output, call, b, h);
  }

  M memory_;
  StateOf<M> zero_ = zero_gradient(memory_);
};

}  // namespace fw::python
