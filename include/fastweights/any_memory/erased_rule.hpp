#pragma once

#include <fastweights/algorithms/backward.hpp>
#include <fastweights/algorithms/checked.hpp>
#include <fastweights/algorithms/parallel_scan.hpp>
#include <fastweights/algorithms/step.hpp>
#include <fastweights/algorithms/streams.hpp>
#include <fastweights/any_memory/state.hpp>
#include <fastweights/any_memory/views.hpp>

/// \file
/// A rule behind virtual functions: the one place that instantiates a rule for clients that choose
/// their memory at run time. Each function makes the records of the rule from views and calls the
/// function of the same name in algorithms/, which checks sizes and states.

namespace fw::inline FASTWEIGHTS_ABI {

/// Abilities of a memory beyond write, read, step and scan. In complex numbers there are no
/// gradients, no chunkwise form and no segments.
struct Capabilities {
  bool differentiable = false;        ///< backward
  bool traced_backward = false;       ///< its own backward pass, by the kernels or by the rule
  bool chunkable = false;             ///< chunked_scan
  bool mergeable = false;             ///< parallel_scan and segments
  bool in_place = false;              ///< outputs of step and scan may be the values
  bool pure_read = false;             ///< reads leave the state as it is
  bool reads_first = false;           ///< a step reads before it writes
  bool has_roles = false;             ///< its inputs say their roles, which random sequences need
  bool states_stability = false;      ///< checked calls know a condition of its own
  bool key_bounds_strength = false;   ///< its condition bounds strengths by the length of keys
  bool keeps_slow_weights = false;    ///< its state has weights that no write changes
  bool learns_initial_state = false;  ///< writes never change a zero state
  bool limits_counts = false;         ///< its state has counters with a range of their own
  bool rolls_back = false;            ///< roll_back
  bool shares_chunks = false;         ///< several queries read one state in chunkwise form
  bool grows = false;                 ///< writes make the arrays of its state larger
  bool reads_after_writes = false;    ///< reads_backward
  Index roll_back_limit = 0;          ///< tokens that it can roll back, if it says so; else 0
};

namespace detail {

// Complex numbers serve the complex step alone, which runs forwards: scan, write, read, step and
// their checked forms. In them a memory behind these functions has no gradients and none of the
// forms below: nobody calls them, and they are half of the compile time. A rule whose type is known
// has them.
template <class M>
concept InReals = !Eigen::NumTraits<typename M::Scalar>::IsComplex;
template <class M>
concept ErasedGradients = InReals<M> && Differentiable<M>;
template <class M>
concept ErasedChunks = InReals<M> && Chunkable<M>;
template <class M>
concept ErasedSegments = InReals<M> && Mergeable<M>;

// A memory whose chunkwise form also reads with the queries of several heads that share a state.
template <class M>
concept SharedChunk = Chunkable<M> &&
    requires(const M& m, StateOf<M>& s, WriteSequence<M> inputs,
             std::span<const ReadSequence<M>> queries, std::span<OutSequence<M>> outs) {
  m.shared_chunk(s, inputs, queries, outs);
};

template <class M>
concept RollsBack = Memory<M> && requires(StateOf<M>& s) {
  roll_back(s, Index(1));
};

// Finds fw::roll_back by its argument; a member of that name would hide it.
template <class State> void take_back(State& s, Index tokens) { roll_back(s, tokens); }

// A memory that says how many tokens it rolls back, as its options decide that.
template <class M>
concept LimitsRollBack = Memory<M> && requires(const M& m, StateOf<M>& s) {
  { m.roll_back_limit() } -> std::same_as<Index>;
  m.roll_back(s, Index(1));
};
template <Memory M> Index roll_back_limit([[maybe_unused]] const M& m) {
  if constexpr (LimitsRollBack<M>)
    return m.roll_back_limit();
  else if constexpr (requires {
                       requires RollsBack<M> && StateOf<M>::undoable >
                       0;
                     })
    return StateOf<M>::undoable;
  else
    return 0;
}

template <class S> using Inputs = AnyViews<const S>;
template <class S> using Outputs = AnyViews<S>;

// The interface to a rule. The number of views and the types of states are checked by the caller.
template <class S> class ErasedMemory {
 public:
  virtual ~ErasedMemory() = default;
  virtual std::unique_ptr<ErasedMemory> copy() const = 0;

  std::string_view name;
  std::vector<SignatureMember> written, read_with, given;
  Capabilities can;
  const void *type = nullptr, *state_type = nullptr;

  virtual AnyState<S> initial_state() const = 0;
  virtual AnyState<S> zero_gradient() const = 0;
  virtual void check_state(const AnyState<S>& s) const = 0;
  virtual void check_capacity(const AnyState<S>& s, Index steps) const = 0;

  virtual void write(AnyState<S>& s, Inputs<S> w, bool checked) const = 0;
  virtual void read(AnyState<S>& s, Inputs<S> r, Outputs<S> y) const = 0;
  virtual void step(AnyState<S>& s, Inputs<S> w, Inputs<S> r, Outputs<S> y) const = 0;
  virtual void step(std::span<AnyState<S>> s, Inputs<S> w, Inputs<S> r, Outputs<S> y,
                    bool parallel) const = 0;
  virtual void checked_step(AnyState<S>& s, Inputs<S> w, Inputs<S> r, Outputs<S> y) const = 0;
  virtual void scan(AnyState<S>& s, Inputs<S> w, Inputs<S> r, Outputs<S> y) const = 0;
  virtual void checked_scan(AnyState<S>& s, Inputs<S> w, Inputs<S> r, Outputs<S> y) const = 0;
  virtual void chunked_scan(AnyState<S>& s, Inputs<S> w, Inputs<S> r, Outputs<S> y,
                            Index chunk) const = 0;
  virtual void shared_chunk(AnyState<S>& s, Inputs<S> w, std::span<const Inputs<S>> r,
                            std::span<const Outputs<S>> y) const = 0;
  virtual void parallel_scan(AnyState<S>& s, Inputs<S> w, Inputs<S> r, Outputs<S> y,
                             Index segments) const = 0;
  virtual void traced_scan(AnyState<S>& s, Inputs<S> w, Inputs<S> r, Outputs<S> y,
                           AnyCheckpoints<S>& to) const = 0;
  virtual void backward(AnyCheckpoints<S>& from, Inputs<S> w, Inputs<S> r, Inputs<S> dy,
                        AnyState<S>& ds, Outputs<S> dw, Outputs<S> dr) const = 0;
  virtual void backward_from(const AnyState<S>& initial, Inputs<S> w, Inputs<S> r, Inputs<S> dy,
                             AnyState<S>& ds, Outputs<S> dw, Outputs<S> dr) const = 0;
  virtual void roll_back(AnyState<S>& s, Index tokens) const = 0;

  virtual AnySegment<S> empty_segment() const = 0;
  virtual void extend(AnySegment<S>& g, Inputs<S> w) const = 0;
  virtual void merge(AnySegment<S>& g, const AnySegment<S>& later) const = 0;
  virtual void apply(const AnySegment<S>& g, AnyState<S>& s) const = 0;

  virtual void reads_backward(const AnyState<S>& s, Inputs<S> r, Inputs<S> dy, AnyState<S>& ds,
                              Outputs<S> dr) const = 0;
};

template <Memory M> constexpr Capabilities capabilities() {
  using W = typename M::Signature::template Write<Extents>;
  using R = typename M::Signature::template Read<Extents>;
  Capabilities can;
  can.differentiable = ErasedGradients<M>;
  can.traced_backward = InReals<M> && CustomBackward<M>;
  can.chunkable = ErasedChunks<M>;
  can.mergeable = ErasedSegments<M>;
  can.in_place = output_may_be_value<M>();
  can.pure_read = PureRead<M>;
  can.reads_after_writes = ReadsAfterWrites<M>;
  can.reads_first = fw::reads_first<M>();
  can.has_roles = requires {
    requires W::roles.size() == W::names.size();
    requires R::roles.size() == R::names.size();
  };
  can.states_stability = StabilityCondition<M>;
  can.key_bounds_strength = fw::key_bounds_strength<M>();
  can.keeps_slow_weights = KeepsSlowWeights<M>;
  can.learns_initial_state = fw::learns_initial_state<M>();
  can.limits_counts = LimitsCounts<M>;
  can.rolls_back = RollsBack<M>;
  can.shares_chunks = SharedChunk<M>;
  return can;
}

template <class View> inline constexpr bool is_number_sequence = false;
template <class S> inline constexpr bool is_number_sequence<ScalarSequence<S>> = true;

// The members of a record of sizes. `Sequences` is the record with views of sequences.
template <class Sequences, class E> std::vector<SignatureMember> members_of(const E& extents) {
  std::vector<SignatureMember> all;
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (all.push_back({.name = E::names[I],
                    .rows = std::get<I>(members(extents)).rows,
                    .width = std::get<I>(members(extents)).width,
                    .chunks = std::get<I>(members(extents)).chunks,
                    .is_number = is_number_sequence<member_t<Sequences, I>>}),
     ...);
  }
  (std::make_index_sequence<member_count<E>>{});
  if constexpr (requires { E::roles; })
    for (std::size_t i = 0; i < all.size(); ++i) all[i].role = E::roles[i];
  return all;
}

template <Memory M> class ErasedRule final : public ErasedMemory<typename M::Scalar> {
  using S = typename M::Scalar;
  using State = StateOf<M>;

 public:
  explicit ErasedRule(M m) : memory_(std::move(m)) {
    const auto signature = memory_.signature();
    this->name = M::name;
    this->written =
        members_of<typename M::Signature::template Write<Sequence<S>>>(signature.write());
    this->read_with =
        members_of<typename M::Signature::template Read<Sequence<S>>>(signature.read());
    this->given = members_of<OutSequence<M>>(signature.out());
    this->can = capabilities<M>();
    this->can.grows = state_grows(memory_);
    this->can.roll_back_limit = roll_back_limit(memory_);
    if (LimitsRollBack<M>) this->can.rolls_back = this->can.roll_back_limit > 0;
    this->type = &type_tag<M>;
    this->state_type = &type_tag<State>;
  }
  std::unique_ptr<ErasedMemory<S>> copy() const override {
    return std::make_unique<ErasedRule>(memory_);
  }
  const M& memory() const { return memory_; }

  AnyState<S> initial_state() const override { return AnyState<S>(fw::initial_state(memory_)); }
  AnyState<S> zero_gradient() const override { return AnyState<S>(fw::zero_gradient(memory_)); }
  void check_state(const AnyState<S>& s) const override { fw::check_state(memory_, of(s)); }
  void check_capacity(const AnyState<S>& s, [[maybe_unused]] Index steps) const override {
    check_state(s);
    if constexpr (requires { memory_.check_capacity(of(s), steps); })
      memory_.check_capacity(of(s), steps);
  }

  void write(AnyState<S>& s, Inputs<S> w, bool checked) const override {
    if (checked)
      fw::checked_write(memory_, of(s), token<WriteToken<M>>(w, this->written));
    else
      fw::write(memory_, of(s), token<WriteToken<M>>(w, this->written));
  }
  void read(AnyState<S>& s, Inputs<S> r, Outputs<S> y) const override {
    fw::read(memory_, of(s), token<ReadToken<M>>(r, this->read_with),
             token<OutToken<M>>(y, this->given));
  }
  void step(AnyState<S>& s, Inputs<S> w, Inputs<S> r, Outputs<S> y) const override {
    fw::step(memory_, of(s), token<WriteToken<M>>(w, this->written),
             token<ReadToken<M>>(r, this->read_with), token<OutToken<M>>(y, this->given));
  }
  void step(std::span<AnyState<S>> s, Inputs<S> w, Inputs<S> r, Outputs<S> y,
            bool parallel) const override {
    const auto state = [&](Index b) -> State& { return of(s[static_cast<std::size_t>(b)]); };
    if constexpr (InReals<M>)
      step_streams(memory_, static_cast<Index>(s.size()), state, writes(w), reads(r), outs(y),
                   parallel);
  }
  void checked_step(AnyState<S>& s, Inputs<S> w, Inputs<S> r, Outputs<S> y) const override {
    fw::checked_step(memory_, of(s), token<WriteToken<M>>(w, this->written),
                     token<ReadToken<M>>(r, this->read_with), token<OutToken<M>>(y, this->given));
  }
  void scan(AnyState<S>& s, Inputs<S> w, Inputs<S> r, Outputs<S> y) const override {
    fw::scan(memory_, of(s), writes(w), reads(r), outs(y));
  }
  void checked_scan(AnyState<S>& s, Inputs<S> w, Inputs<S> r, Outputs<S> y) const override {
    fw::checked_scan(memory_, of(s), writes(w), reads(r), outs(y));
  }
  void chunked_scan(AnyState<S>& s, Inputs<S> w, Inputs<S> r, Outputs<S> y,
                    Index chunk) const override {
    if constexpr (ErasedChunks<M>)
      fw::chunked_scan(memory_, of(s), writes(w), reads(r), outs(y), chunk);
  }
  void shared_chunk(AnyState<S>& s, Inputs<S> w, std::span<const Inputs<S>> r,
                    std::span<const Outputs<S>> y) const override {
    if constexpr (SharedChunk<M>) {
      std::vector<ReadSequence<M>> queries;
      std::vector<OutSequence<M>> outputs;
      for (const Inputs<S>& each : r) queries.push_back(reads(each));
      for (const Outputs<S>& each : y) outputs.push_back(outs(each));
      check_shared_chunk(of(s), writes(w), queries, outputs);
      memory_.shared_chunk(of(s), writes(w), queries, outputs);
    }
  }
  void parallel_scan(AnyState<S>& s, Inputs<S> w, Inputs<S> r, Outputs<S> y,
                     Index segments) const override {
    if constexpr (ErasedSegments<M>)
      fw::parallel_scan(memory_, of(s), writes(w), reads(r), outs(y), segments);
  }
  void traced_scan(AnyState<S>& s, Inputs<S> w, Inputs<S> r, Outputs<S> y,
                   AnyCheckpoints<S>& to) const override {
    if constexpr (ErasedGradients<M>) {
      if (!to.value.template get<Checkpoints<M>>())
        to.value = AnyValue(std::make_unique<ErasedValueOf<Checkpoints<M>>>(Checkpoints<M>()));
      Checkpoints<M>& checkpoints = *to.value.template get<Checkpoints<M>>();
      checkpoints.requested_interval = to.requested_interval;
      fw::scan(memory_, of(s), writes(w), reads(r), outs(y), checkpoints);
    }
  }
  void backward(AnyCheckpoints<S>& from, Inputs<S> w, Inputs<S> r, Inputs<S> dy, AnyState<S>& ds,
                Outputs<S> dw, Outputs<S> dr) const override {
    if constexpr (ErasedGradients<M>) {
      auto* checkpoints = from.value.template get<Checkpoints<M>>();
      if (!checkpoints)
        throw_invalid({M::name, ": backward: no scan of this memory has filled the checkpoints"});
      fw::backward(memory_, *checkpoints, writes(w), reads(r), out_gradients(dy), of(ds),
                   write_gradients(dw), read_gradients(dr));
    }
  }
  void backward_from(const AnyState<S>& initial, Inputs<S> w, Inputs<S> r, Inputs<S> dy,
                     AnyState<S>& ds, Outputs<S> dw, Outputs<S> dr) const override {
    if constexpr (ErasedGradients<M>)
      fw::backward(memory_, of(initial), writes(w), reads(r), out_gradients(dy), of(ds),
                   write_gradients(dw), read_gradients(dr));
  }
  void reads_backward(const AnyState<S>& s, Inputs<S> r, Inputs<S> dy, AnyState<S>& ds,
                      Outputs<S> dr) const override {
    if constexpr (ReadsAfterWrites<M>)
      fw::reads_backward(memory_, of(s), reads(r), out_gradients(dy), of(ds), read_gradients(dr));
  }
  void roll_back([[maybe_unused]] AnyState<S>& s, [[maybe_unused]] Index tokens) const override {
    if constexpr (LimitsRollBack<M>)
      memory_.roll_back(of(s), tokens);
    else if constexpr (RollsBack<M>)
      take_back(of(s), tokens);
  }

  AnySegment<S> empty_segment() const override {
    AnySegment<S> g;
    if constexpr (ErasedSegments<M>)
      g.value =
          AnyValue(std::make_unique<ErasedValueOf<typename M::Segment>>(memory_.empty_segment()));
    return g;
  }
  void extend(AnySegment<S>& g, Inputs<S> w) const override {
    if constexpr (ErasedSegments<M>) {
      const auto inputs = writes(w);
      const auto extents = memory_.signature().write();
      const Index steps = steps_of(inputs, extents);
      check_sequence(M::name, inputs, extents, steps);
      detail::extend(memory_, of(g), inputs, steps);
    }
  }
  void merge(AnySegment<S>& g, const AnySegment<S>& later) const override {
    if constexpr (ErasedSegments<M>) {
      if (&g == &later) return merge(g, AnySegment<S>(later));
      memory_.merge(of(g), of(later));
    }
  }
  void apply(const AnySegment<S>& g, AnyState<S>& s) const override {
    if constexpr (ErasedSegments<M>) {
      fw::check_state(memory_, of(s));
      memory_.apply(of(g), of(s));
    }
  }

 private:
  [[noreturn]] static void throw_other_state() {
    throw_invalid({M::name,
                   ": the state is empty or one of another memory; initial_state() of this "
                   "memory makes one"});
  }
  void check_shared_chunk(const State& s, const WriteSequence<M>& inputs,
                          std::span<const ReadSequence<M>> queries,
                          std::span<const OutSequence<M>> outputs) const {
    if (outputs.size() != queries.size())
      throw_mismatch(M::name, "shared_chunk", std::ssize(outputs), "outputs", std::ssize(queries),
                     "the number of queries");
    const Index steps = steps_of(inputs, memory_.signature().write());
    fw::check_state(memory_, s);
    check_sequence(M::name, inputs, memory_.signature().write(), steps);
    for (std::size_t h = 0; h < queries.size(); ++h) {
      check_scan(memory_, s, inputs, queries[h], steps);
      check_outputs(memory_, s, inputs, queries[h], outputs[h], steps);
      for (std::size_t other = 0; other < h; ++other) {
        check_apart(M::name, outputs[h], queries[other], outputs[other]);
        check_apart(M::name, outputs[other], queries[h]);
      }
    }
  }
  static State& of(AnyState<S>& s) {
    State* const state = s.template get<State>();
    if (!state) throw_other_state();
    return *state;
  }
  static const State& of(const AnyState<S>& s) { return of(const_cast<AnyState<S>&>(s)); }
  template <class Rule = M> static auto& of(AnySegment<S>& g) {
    auto* const segment = g.value.template get<typename Rule::Segment>();
    if (!segment)
      throw_invalid({M::name,
                     ": the segment is empty or one of another memory; empty_segment() of "
                     "this memory makes one"});
    return *segment;
  }
  template <class Rule = M> static const auto& of(const AnySegment<S>& g) {
    return of<Rule>(const_cast<AnySegment<S>&>(g));
  }

  template <class R, class T>
  static EIGEN_ALWAYS_INLINE R token(const AnyViews<T>& views,
                                     std::span<const SignatureMember> members) {
    check_numbers<R>(M::name, members, views, std::make_index_sequence<member_count<R>>{});
    return record_of<R>(views);
  }
  // Functions of their own, because every form of a scan needs them.
  static EIGEN_DONT_INLINE WriteSequence<M> writes(const Inputs<S>& views) {
    return record_of<WriteSequence<M>>(views);
  }
  static EIGEN_DONT_INLINE ReadSequence<M> reads(const Inputs<S>& views) {
    return record_of<ReadSequence<M>>(views);
  }
  static EIGEN_DONT_INLINE OutSequence<M> outs(const Outputs<S>& views) {
    return record_of<OutSequence<M>>(views);
  }
  static EIGEN_DONT_INLINE OutGradSequence<M> out_gradients(const Inputs<S>& views) {
    return record_of<OutGradSequence<M>>(views);
  }
  static EIGEN_DONT_INLINE WriteGradSequence<M> write_gradients(const Outputs<S>& views) {
    return record_of<WriteGradSequence<M>>(views);
  }
  static EIGEN_DONT_INLINE ReadGradSequence<M> read_gradients(const Outputs<S>& views) {
    return record_of<ReadGradSequence<M>>(views);
  }

  M memory_;
};

// A rule behind virtual functions. The groups of any_memory/table/ say which rules
// fastweights::compiled has.
template <Memory M> std::unique_ptr<ErasedMemory<typename M::Scalar>> erased(M m) {
  return std::make_unique<ErasedRule<M>>(std::move(m));
}

}  // namespace detail

}  // namespace fw
