#pragma once

#include <fastweights/core/check.hpp>
#include <fastweights/core/state.hpp>

/// \file
/// One token at a time. None of these functions locks, and none allocates except here:
/// - Temporaries of a dynamic rule above EIGEN_STACK_ALLOCATION_LIMIT (128 KiB) are on the heap. A
///   matrix of fixed size must not exceed this limit.
/// - A write to a ContinuousMemory that needs a new ridge operator computes it on the heap, and the
///   first one in a thread allocates buffers, unless this thread has called
///   ContinuousMemory::prepare.
/// - Where Eigen has no alloca (bare metal, clang for Thumb), temporaries of dynamic rules are on
///   the heap. Define EIGEN_ALLOCA or use fixed sizes there.
/// - With OpenMP, Eigen starts threads and allocates for larger products, such as those of a memory
///   of chunks. Call Eigen::setNbThreads(1) to prevent this.
///
/// All functions throw std::invalid_argument, naming the member, when a size does not fit, and
/// naming both members when an output overlaps an input or another output, or any of them a state
/// that the call changes; and std::length_error when a memory with WhenFull::refuse is full. The
/// state and the outputs are unchanged then.
///
///     fw::step(memory, state, {k, v, beta}, {q}, {y});

namespace fw::inline FASTWEIGHTS_ABI {

namespace detail {

template <Memory M> EIGEN_ALWAYS_INLINE void check_written(const M& m, const WriteToken<M>& input) {
  const auto extents = m.signature().write();
  check_token(M::name, input, extents);
  check_chunks(M::name, input, extents);
}

template <Memory M>
EIGEN_ALWAYS_INLINE void check_write(const M& m, const StateOf<M>& state,
                                     const WriteToken<M>& input) {
  fw::check_state(m, state);
  check_written(m, input);
  check_outside(M::name, state, NoViews{}, input);
}

template <Memory M>
EIGEN_ALWAYS_INLINE void check_query(const M& m, const ReadToken<M>& query,
                                     const OutToken<M>& output) {
  const auto signature = m.signature();
  check_token(M::name, query, signature.read());
  check_token(M::name, output, signature.out());
  check_chunks(M::name, output, signature.out(), check_chunks(M::name, query, signature.read()));
}

// A query may lie in a state that the read does not change.
template <Memory M>
EIGEN_ALWAYS_INLINE void check_read(const M& m, const StateOf<M>& state, const ReadToken<M>& query,
                                    const OutToken<M>& output) {
  fw::check_state(m, state);
  check_query(m, query, output);
  check_apart(M::name, output, query);
  if constexpr (PureRead<M>)
    check_outside(M::name, state, output);
  else
    check_outside(M::name, state, output, query);
}

template <Memory M>
EIGEN_ALWAYS_INLINE void check_step(const M& m, const StateOf<M>& state, const WriteToken<M>& input,
                                    const ReadToken<M>& query, const OutToken<M>& output) {
  fw::check_state(m, state);
  check_written(m, input);
  check_query(m, query, output);
  check_apart(M::name, output, query, input);
  check_outside(M::name, state, output, query, input);
}

template <Memory M>
EIGEN_ALWAYS_INLINE void run_step(const M& m, StateOf<M>& state, WriteToken<M> input,
                                  ReadToken<M> query, OutToken<M> output) {
  if constexpr (FusedStep<M>) {
    scan_forms(m).step(state, input, query, output);
  } else if constexpr (reads_first<M>()) {
    m.read(state, query, output);
    m.write(state, input);
  } else {
    m.write(state, input);
    m.read(state, query, output);
  }
}

}  // namespace detail

/// Writes one token into the state.
template <Memory M> void write(const M& m, StateOf<M>& state, WriteToken<M> input) {
  detail::check_write(m, state, input);
  m.write(state, input);
}

/// Reads the state with one query; overwrites `output`.
template <Memory M>
void read(const M& m, StateOf<M>& state, ReadToken<M> query, OutToken<M> output) {
  detail::check_read(m, state, query, output);
  m.read(state, query, output);
}

/// Reads with one query, without a write. The state stays as it is.
template <PureRead M>
void read(const M& m, const StateOf<M>& state, ReadToken<M> query, OutToken<M> output) {
  detail::check_read(m, state, query, output);
  m.read(state, query, output);
}

/// Writes, then reads, or reads first for rules with `reads_first`. Overwrites `output`. Inline,
/// because passing views to a function takes as long as a step of a small state.
template <Memory M>
EIGEN_ALWAYS_INLINE void step(const M& m, StateOf<M>& state, WriteToken<M> input,
                              ReadToken<M> query, OutToken<M> output) {
  detail::check_step(m, state, input, query, output);
  detail::run_step(m, state, input, query, output);
}

}  // namespace fw

// Behind the functions above, so that a compiler lists these first.
#include <fastweights/algorithms/mistakes.hpp>
