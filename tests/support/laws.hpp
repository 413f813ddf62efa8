#pragma once

#include <functional>

#include "support/subject.hpp"

/// \file
/// The laws that every memory obeys: ordinary functions of a memory, compiled once. The tests of
/// tests/laws apply them to all memories of the table, and to a few that are not in it.

namespace laws {

/// Makes a run over `steps` random tokens, from the state after `used` other tokens.
template <class S> using Runs = std::function<Run<S>(Index steps, Index used, std::uint64_t seed)>;
template <class S> Runs<S> runs_of(const Subject& subject);
template <class S> Runs<S> runs_of(const AnyMemory<S>& memory, bool positive = false);

/// A step is a write and a read, or a read and a write if the rule reads first.
template <class S> void step_is_write_and_read(const Runs<S>& runs);
/// A scan is steps, for every split of the sequence in two.
template <class S> void scan_is_steps(const Runs<S>& runs);
/// The chunkwise form is the recurrent form, for chunks of any length, also beyond the sequence's.
template <class S> void chunked_is_recurrent(const Runs<S>& runs);
/// Merged segments and parallel scans are one scan.
template <class S> void merged_is_recurrent(const Runs<S>& runs);
/// A state is a value: a copy is independent, and going back repeats the same bits.
template <class S> void state_is_a_value(const Runs<S>& runs);
/// Sequences of a wrong size are refused by name and leave the state unchanged.
template <class S> void wrong_sizes_are_refused(const Runs<S>& runs);
/// An output that overlaps what is written or read with is refused by every call, naming both, and
/// leaves state and output unchanged.
template <class S> void overlaps_are_refused(const Runs<S>& runs);
/// A value that is also the output gives the bits of one that is not, where a memory allows it.
template <class S> void outputs_may_be_values(const Runs<S>& runs);
/// So is a view that lies in the state which the call changes, or in its gradient.
template <class S> void views_of_the_state_are_refused(const Runs<S>& runs);
/// So is a gradient that overlaps another one or what backward reads.
template <class S> void gradient_overlaps_are_refused(const Runs<S>& runs);
/// Inputs and outputs that lie between each other in one matrix give the numbers of separate ones.
template <class S> void interleaved_numbers_are_apart(const Runs<S>& runs);
/// The results in float are those in double up to rounding.
void float_follows_double(const Runs<float>& rounded, const Runs<double>& exact,
                          double tolerance = 2e-5);
/// All of these in double.
void all(const AnyMemory<double>& memory, bool positive = false);

/// A memory whose sizes are fixed at compile time obeys all laws and gives the numbers of the same
/// memory with sizes at run time: outputs, states and gradients.
void fixed_is_dynamic(const AnyMemory<double>& fixed, const AnyMemory<double>& dynamic,
                      bool positive = false);

/// The gradients of all inputs, queries and the initial state equal the complex step.
void gradients_are_exact(const AnyMemory<double>& memory, const AnyMemory<Complex>& in_complex,
                         Index steps, bool positive = false);
/// So are those of reads after all writes, of the queries and of the state.
void gradients_of_reads_are_exact(const AnyMemory<double>& memory,
                                  const AnyMemory<Complex>& in_complex, bool positive = false);
/// A backward pass that is given the first state equals one that is given checkpoints.
void backward_from_the_first_state(const AnyMemory<double>& memory, bool positive = false);
/// Checkpoints of a scan and backward pass serve the same rule in another size, to the last bit.
void checkpoints_fit_another_size(const AnyMemory<double>& small, const AnyMemory<double>& large,
                                  bool positive = false);
/// Inputs, queries and gradients of a wrong size are refused and leave all gradients unchanged.
void wrong_gradients_are_refused(const AnyMemory<double>& memory, bool positive = false);

}  // namespace laws
