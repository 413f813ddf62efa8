#pragma once

#include <fastweights/any_memory/any_memory.hpp>
#include <span>
#include <variant>
#include <vector>

#include "arrays.hpp"
#include "memory_class.hpp"

/// \file
/// A memory of the table for several heads and sequences, in either scalar.

namespace fw::python {

template <class S> using StatesOf = std::vector<AnyState<S>>;
template <class S> using TracesOf = std::vector<AnyCheckpoints<S>>;

/// The states of batch × heads streams; stream b·heads + h belongs to head h of sequence b.
struct Streams {
  std::variant<StatesOf<float>, StatesOf<double>> each;

  Index count() const;
  /// The record of one stream. Its arrays and numbers are the stream's own.
  fw::detail::Object stream(Index i) const;
};

/// The trace of a scan for the backward pass, of each stream.
struct Traces {
  std::variant<TracesOf<float>, TracesOf<double>> each;
  Index batch = -1, time = 0;  ///< a negative batch: no scan has filled them
};

/// A sequence for every stream: how many, its length, the inputs and the outputs.
struct Call {
  Index batch = 0, time = 0;
  std::vector<Sequences> inputs;
  Sequences output;
};

/// The memory of one head, how many heads there are, and the shapes of a call.
class Heads {
 public:
  /// Throws std::invalid_argument for a size or an option that the memory refuses.
  Heads(const MemoryClass& type, Index head_count, DType scalar, const MemoryOptions& options);

  const MemoryClass& type;
  Index count = 1;
  DType dtype;
  Index key_size = 1;
  bool differentiable = false;
  bool grows = false;  // the arrays of a state get larger
  std::vector<Member> inputs;
  Member output;
  std::vector<double> settings;  ///< values of type.settings

  const std::string& name() const { return type.name; }  ///< of the class in Python, for errors
  /// The record of a stream in its first state, for names and shapes. Not to be changed.
  fw::detail::Object first() const { return first_.stream(0); }
  Streams initial_states(Index batch) const { return copies(first_, batch); }
  Streams zero_gradients(Index batch) const { return copies(zero_, batch); }
  Traces traces() const;

  /// The tokens of a member's array for `time` tokens of a memory that takes `chunk` at once.
  Index tokens_of(const Member& member, Index time) const;

  /// Throws std::invalid_argument or std::length_error unless all states are legal and have room.
  void check(const Streams& states, Index time) const;
  /// Fills `traces` unless it is null.
  void scan(Streams& states, const Call& call, Traces* traces) const;
  /// call.output is the gradient of the outputs. `gradient` is that of the final state on entry and
  /// that of the initial state on return. Adds to `dinputs`.
  void backward(const Streams& initial, const Call& call, Streams& gradient,
                std::span<const Sequences> dinputs) const;
  void backward(Traces& traces, const Call& call, Streams& gradient,
                std::span<const Sequences> dinputs) const;

 private:
  template <class S> class Views;
  template <class S> void set(const AnyMemory<S>& memory);
  Streams copies(const Streams& one, Index batch) const;
  template <class F> void for_each_stream(const Call& call, const F& f) const;
  template <class Start>
  void backward_from(const Start& start, const Call& call, Streams& gradient,
                     std::span<const Sequences> dinputs) const;

  std::variant<AnyMemory<float>, AnyMemory<double>> memory_;
  Streams first_, zero_;
  Index chunk_ = 1;
  Index state_entries_ = 0;  // of one stream, by which the work is estimated
  bool has_counters_ = false;
};

}  // namespace fw::python
