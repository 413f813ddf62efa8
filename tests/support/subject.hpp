#pragma once

#include <complex>
#include <fastweights/any_memory/table.hpp>
#include <fastweights/testing/any_sequences.hpp>
#include <string>
#include <vector>

#include "support/values.hpp"

/// \file
/// The subject of the laws: a memory by name, with its options. The laws are ordinary functions of
/// a subject and compile once. Every name of fw::memory_names() is a subject.

namespace laws {

using fw::AnyMemory;
using fw::AnyState;
using fw::Index;
using Complex = std::complex<double>;

/// A memory of the table with options.
struct Subject {
  std::string name;
  fw::MemoryOptions options;

  template <class S> AnyMemory<S> memory() const { return fw::make_memory<S>(name, options); }
  /// True if the table has it in this scalar.
  template <class S> bool has() const;
  /// True if its keys must be positive.
  bool positive() const { return fw::memory_facts(name).positive_keys; }
  /// "DeltaRule, d_k = 3, d_v = 17", and the other options.
  std::string text() const;
};

/// The memory with sizes, and with small values of the options that decide how much it keeps: a
/// cache of a few tokens, a few levels. A memory with one size has d = d_k.
Subject subject(const std::string& name, Index dk, Index dv);
/// Every memory of the table with these sizes; a memory with one size is left out unless they
/// agree.
template <class S = double> std::vector<Subject> subjects(Index dk, Index dv);
/// Every memory of the table with other values of its options than `subject` gives.
template <class S = double> std::vector<Subject> variants();

/// The first state of the laws: that of the memory, with slow weights that differ and, where zero
/// would stay zero, with random numbers. The same in all scalars.
AnyState<double> first_state(const AnyMemory<double>& memory);
template <class S> AnyState<S> first_state(const Subject& subject);

/// A memory with a state and a sequence. Steps write their outputs to the sequence.
template <class S> class Run {
 public:
  /// Over `steps` random tokens, from the state after `used` other tokens.
  Run(const Subject& subject, Index steps, Index used, std::uint64_t seed);
  /// A run of any memory. `first` is the state before all tokens.
  Run(AnyMemory<S> any, AnyState<S> first, bool positive, Index steps, Index used,
      std::uint64_t seed);

  void step(Index t) { memory.step(state, input(t), query(t), output(t)); }
  void write(Index t) { memory.write(state, input(t)); }
  void read(Index t) { memory.read(state, query(t), output(t)); }
  void scan(Index first = 0, Index count = -1) {
    memory.scan(state, all.inputs.part(first, count), all.queries.part(first, count),
                all.outputs.template part<S>(first, count));
  }
  std::vector<fw::AnyView<const S>> input(Index t) { return all.inputs.part(t, 1); }
  std::vector<fw::AnyView<const S>> query(Index t) { return all.queries.part(t, 1); }
  std::vector<fw::AnyView<S>> output(Index t) { return all.outputs.template part<S>(t, 1); }

  AnyMemory<S> memory;
  fw::testing::AnySequences<S> all;
  AnyState<S> state;
};

template <class S> Values values_of(const AnyState<S>& state) { return values_of(state.object()); }
template <class S> Values values_of(const fw::testing::AnyRecord<S>& record);

/// The difference of two records: see support/values.hpp.
template <class A, class B> double difference(const A& a, const B& b) {
  return difference(values_of(a), values_of(b));
}

}  // namespace laws
