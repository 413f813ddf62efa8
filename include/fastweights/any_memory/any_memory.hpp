#pragma once

#include <fastweights/any_memory/erased_rule.hpp>
#include <fastweights/math/parallel_for.hpp>

/// \file
/// A memory that is chosen at run time. Any memory converts to it:
///
///     fw::AnyMemory<float> memory = fw::GatedDeltaRule<float>({.key_size = 64});
///     fw::AnyState<float> state = memory.initial_state();
///     memory.step(state, {key, value, beta, decay}, {query}, {output});
///     memory.scan(state, {K, V, betas, decays}, {Q}, {Y});
///
/// It knows the names, roles and sizes of what it writes, reads and gives, and what else it can do.
/// Its functions are those of algorithms/ with the same checks and errors, and one virtual call
/// more. make_memory (any_memory/table.hpp) makes one by name.
///
/// In complex numbers, which serve the complex step, it only runs forwards: it has no gradients,
/// no chunkwise form, no segments and no steps of several streams. A rule whose type is known has
/// them in every scalar.

namespace fw::inline FASTWEIGHTS_ABI {

/// A memory of any type with scalar S: a value. Const functions may run in several threads, each
/// with its own state. All of them throw std::invalid_argument, naming the member, when a view or a
/// state does not fit, and then change nothing.
template <class S> class AnyMemory {
 public:
  using Scalar = S;                  ///< of states, inputs and outputs
  using State = AnyState<S>;         ///< what it keeps
  using Inputs = AnyViews<const S>;  ///< what is written or read with
  using Outputs = AnyViews<S>;       ///< what a call overwrites, or adds gradients to

  /// Any memory of this scalar.
  template <Memory M>
  requires std::same_as<typename M::Scalar, S> AnyMemory(M m)  // NOLINT: implicit by design
      : rule_(detail::erased(std::move(m))) {}
  AnyMemory(AnyMemory&&) noexcept = default;
  AnyMemory& operator=(AnyMemory&&) noexcept = default;
  /// Copies the rule with its hyperparameters.
  AnyMemory(const AnyMemory& other) : rule_(other.rule_->copy()) {}
  AnyMemory& operator=(const AnyMemory& other) { return *this = AnyMemory(other); }

  /// The name of the rule, as its errors have it.
  std::string_view name() const { return rule_->name; }
  /// Members that a write takes, in order.
  std::span<const SignatureMember> written() const { return rule_->written; }
  /// Members that a read takes, in order.
  std::span<const SignatureMember> read_with() const { return rule_->read_with; }
  /// Members that a read gives, in order.
  std::span<const SignatureMember> given() const { return rule_->given; }
  /// Abilities of the rule.
  const Capabilities& can() const { return rule_->can; }
  /// The rule as an M, or null if it is of another type.
  template <Memory M> const M* get() const {
    if (rule_->type != &detail::type_tag<M>) return nullptr;
    return &static_cast<const detail::ErasedRule<M>&>(*rule_).memory();
  }

  /// The state before any token.
  State initial_state() const { return rule_->initial_state(); }
  /// A zero gradient for a state.
  State zero_gradient() const { return rule_->zero_gradient(); }
  /// A state with the numbers of a state of the same rule in another scalar.
  template <class T> State state_from(const AnyState<T>& other) const;
  /// True if it is a state of this rule, of any size.
  bool is_own(const State& state) const { return state.type() == rule_->state_type; }
  /// Throws unless it is a state that writes of this memory can reach; see fw::check_state.
  void check_state(const State& state) const { rule_->check_state(state); }
  /// As check_state; and throws std::length_error if the state has no room for `steps` more tokens.
  void check_capacity(const State& state, Index steps) const {
    rule_->check_capacity(state, steps);
  }

  /// Writes one token.
  void write(State& state, Inputs written) const {
    check_token(written);
    rule_->write(state, written, false);
  }
  /// Reads with one query; overwrites `outputs`.
  void read(State& state, Inputs queries, Outputs outputs) const {
    check_query(queries, outputs);
    rule_->read(state, queries, outputs);
  }
  /// Reads, of a rule whose reads leave the state as it is.
  void read(const State& state, Inputs queries, Outputs outputs) const {
    require(can().pure_read, "read of a const state: its reads change the state");
    read(const_cast<State&>(state), queries, outputs);
  }
  /// Writes, then reads, or reads first if can().reads_first. Does not allocate.
  void step(State& state, Inputs written, Inputs queries, Outputs outputs) const {
    check_token(written);
    check_query(queries, outputs);
    rule_->step(state, written, queries, outputs);
  }
  /// One token of each of several streams: states[b] takes column b. With `parallel` and OpenMP the
  /// streams are shared by threads. Sizes and states are checked before the first step.
  void step(std::span<State> states, Inputs written, Inputs queries, Outputs outputs,
            bool parallel = false) const;

  /// Writes and reads the tokens of a sequence, one a column.
  void scan(State& state, Inputs written, Inputs queries, Outputs outputs) const {
    check_records(written, queries, outputs);
    rule_->scan(state, written, queries, outputs);
  }
  /// A scan of several heads, each with its own state. Their rows are stacked: head h has rows
  /// h·rows to (h + 1)·rows of every member. With `parallel` and OpenMP heads run in threads.
  void scan(std::span<State> heads, Inputs written, Inputs queries, Outputs outputs,
            bool parallel = false) const;
  /// As scan, and stores what backward needs.
  void scan(State& state, Inputs written, Inputs queries, Outputs outputs,
            AnyCheckpoints<S>& checkpoints) const {
    require(can().differentiable, "gradients");
    check_records(written, queries, outputs);
    rule_->traced_scan(state, written, queries, outputs, checkpoints);
  }
  /// As scan, `chunk` tokens at a time in matrix products.
  void chunked_scan(State& state, Inputs written, Inputs queries, Outputs outputs,
                    Index chunk = 64) const {
    require(can().chunkable, "chunkwise form");
    check_records(written, queries, outputs);
    rule_->chunked_scan(state, written, queries, outputs, chunk);
  }
  /// One chunk that several queries read, each with outputs of its own.
  void shared_chunk(State& state, Inputs written, std::span<const Inputs> queries,
                    std::span<const Outputs> outputs) const {
    require(can().shares_chunks, "chunkwise form for shared states");
    rule_->shared_chunk(state, written, queries, outputs);
  }
  /// As scan, in `segments` parts in parallel; see fw::parallel_scan.
  void parallel_scan(State& state, Inputs written, Inputs queries, Outputs outputs,
                     Index segments) const {
    require(can().mergeable, "segments that merge");
    check_records(written, queries, outputs);
    rule_->parallel_scan(state, written, queries, outputs, segments);
  }

  /// As write, for a token that is checked: see algorithms/checked.hpp.
  void checked_write(State& state, Inputs written) const {
    check_token(written);
    rule_->write(state, written, true);
  }
  /// As step, for a checked token and query.
  void checked_step(State& state, Inputs written, Inputs queries, Outputs outputs) const {
    check_token(written);
    check_query(queries, outputs);
    rule_->checked_step(state, written, queries, outputs);
  }
  /// As scan, for checked tokens and queries.
  void checked_scan(State& state, Inputs written, Inputs queries, Outputs outputs) const {
    check_records(written, queries, outputs);
    rule_->checked_scan(state, written, queries, outputs);
  }

  /// The gradients of a sequence whose scan filled `checkpoints`. `ds` is the gradient of the final
  /// state on entry and of the initial state on return; the gradients of inputs and queries
  /// accumulate.
  void backward(AnyCheckpoints<S>& checkpoints, Inputs written, Inputs queries, Inputs dy,
                State& ds, Outputs dwritten, Outputs dqueries) const {
    check_gradients(written, queries, dy, dwritten, dqueries);
    rule_->backward(checkpoints, written, queries, dy, ds, dwritten, dqueries);
  }
  /// Gradients from the initial state: runs the writes of the forward pass.
  void backward(const State& initial, Inputs written, Inputs queries, Inputs dy, State& ds,
                Outputs dwritten, Outputs dqueries) const {
    check_gradients(written, queries, dy, dwritten, dqueries);
    rule_->backward_from(initial, written, queries, dy, ds, dwritten, dqueries);
  }
  /// The gradients of reads of one state, as many as queries: those of the state and of the queries
  /// accumulate.
  void reads_backward(const State& state, Inputs queries, Inputs dy, State& ds,
                      Outputs dqueries) const {
    require(can().reads_after_writes, "gradients of reads after all writes");
    check_read_gradients(queries, dy, dqueries);
    rule_->reads_backward(state, queries, dy, ds, dqueries);
  }

  /// Rolls back the last tokens, at most can().roll_back_limit: of a Deferred memory that keeps
  /// them, or a cache that does not slide.
  void roll_back(State& state, Index tokens) const {
    require(can().rolls_back, "roll back");
    rule_->check_state(state);
    rule_->roll_back(state, tokens);
  }

  /// A segment of no writes.
  AnySegment<S> empty_segment() const {
    require(can().mergeable, "segments that merge");
    return rule_->empty_segment();
  }
  /// Adds the writes of a sequence at the end of a segment.
  void extend(AnySegment<S>& segment, Inputs written) const {
    require(can().mergeable, "segments that merge");
    check_count("written", written.size(), this->written());
    rule_->extend(segment, written);
  }
  /// The segment becomes: first its writes, then those of `later`, which may be the segment itself.
  void merge(AnySegment<S>& segment, const AnySegment<S>& later) const {
    require(can().mergeable, "segments that merge");
    rule_->merge(segment, later);
  }
  /// The state becomes that after the writes of the segment.
  void apply(const AnySegment<S>& segment, State& state) const {
    require(can().mergeable, "segments that merge");
    rule_->apply(segment, state);
  }

 private:
  void require(bool has, std::string_view what) const {
    constexpr bool is_complex = Eigen::NumTraits<S>::IsComplex;
    if (!has)
      detail::throw_invalid({name(), " has no ", what, is_complex ? " in complex numbers" : ""});
  }
  void check_count(std::string_view record, std::size_t views,
                   std::span<const SignatureMember> expected) const {
    if (views != expected.size()) detail::throw_view_count(name(), record, views, expected);
  }
  void check_records(const Inputs& w, const Inputs& r, const Outputs& y) const {
    check_count("written", w.size(), rule_->written);
    check_count("read with", r.size(), rule_->read_with);
    check_count("given", y.size(), rule_->given);
  }
  void check_token(const Inputs& w) const { check_count("written", w.size(), rule_->written); }
  void check_query(const Inputs& r, const Outputs& y) const {
    check_count("read with", r.size(), rule_->read_with);
    check_count("given", y.size(), rule_->given);
  }
  void check_read_gradients(const Inputs& r, const Inputs& dy, const Outputs& dr) const {
    check_count("read with", r.size(), rule_->read_with);
    check_count("given", dy.size(), rule_->given);
    check_count("read with", dr.size(), rule_->read_with);
  }
  void check_gradients(const Inputs& w, const Inputs& r, const Inputs& dy, const Outputs& dw,
                       const Outputs& dr) const {
    require(can().differentiable, "gradients");
    check_count("written", w.size(), rule_->written);
    check_count("written", dw.size(), rule_->written);
    check_read_gradients(r, dy, dr);
  }

  std::unique_ptr<detail::ErasedMemory<S>> rule_;
};

}  // namespace fw

#include <fastweights/any_memory/streams.hpp>
