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
/// - A KeyValueCache doubles its room when it is full, unless it has WhenFull::refuse or
///   WhenFull::slide.
///
/// All functions throw std::invalid_argument, naming the member, when a size does not fit, and
/// naming both members when an output overlaps an input or another output; and std::length_error
/// when a memory with WhenFull::refuse is full. The state and the outputs are unchanged then. A
/// view of the state that a call changes, such as `state.W.col(0)`, is wrong without an error: to
/// look for it takes a tenth of the time of a small step. Checked steps (checked.hpp) and all calls
/// of several tokens look.
///
///     fw::step(memory, state, {k, v, beta}, {q}, {y});

namespace fw::inline FASTWEIGHTS_ABI {

namespace detail {

template <Memory M>
EIGEN_ALWAYS_INLINE void check_write(const M& m, const StateOf<M>& state,
                                     const WriteToken<M>& input) {
  const auto extents = m.signature().write();
  fw::check_state(m, state);
  check_token(M::name, input, extents);
  check_chunks(M::name, input, extents);
}

template <Memory M>
EIGEN_ALWAYS_INLINE void check_query(const M& m, const ReadToken<M>& query,
                                     const OutToken<M>& output) {
  const auto signature = m.signature();
  check_token(M::name, query, signature.read());
  check_token(M::name, output, signature.out());
  check_chunks(M::name, output, signature.out(), check_chunks(M::name, query, signature.read()));
}

template <Memory M>
EIGEN_ALWAYS_INLINE void check_read(const M& m, const StateOf<M>& state, const ReadToken<M>& query,
                                    const OutToken<M>& output) {
  fw::check_state(m, state);
  check_query(m, query, output);
  check_apart(M::name, output, query);
}

template <Memory M>
EIGEN_ALWAYS_INLINE void check_step(const M& m, const StateOf<M>& state, const WriteToken<M>& input,
                                    const ReadToken<M>& query, const OutToken<M>& output) {
  check_write(m, state, input);
  check_query(m, query, output);
  if constexpr (output_may_be_value<M>())
    check_apart_or_in_place(M::name, output, query, input);
  else
    check_apart(M::name, output, query, input);
}

template <Memory M>
EIGEN_ALWAYS_INLINE void run_step(const M& m, StateOf<M>& state, WriteToken<M> input,
                                  ReadToken<M> query, OutToken<M> output) {
  if constexpr (FusedStep<M>) {
    scan_implementation(m).step(state, input, query, output);
  } else if constexpr (reads_first<M>()) {
    m.read(state, query, output);
    m.write(state, input);
  } else {
    m.write(state, input);
    m.read(state, query, output);
  }
}

}  // namespace detail

/// Writes one token into the state. Inline, as step.
template <Memory M>
EIGEN_ALWAYS_INLINE void write(const M& m, StateOf<M>& state, WriteToken<M> input) {
  detail::check_write(m, state, input);
  detail::run_write(m, state, input);
}

/// Writes one token into the state and overwrites `error` with what the write found to correct, the
/// value less what the state answered to the key:
///
///     e_t = v_t − W_{t−1} k_t                  delta rule
///     e_t = v_t − W_{t−1} D_t k_t              with decays D_t
///
/// In general it is v_j − r_j of every correction j, one per column (docs/design.md, "One form for
/// the family"): the look-up key and the value are those of the rule, and with a normaliser both
/// terms are scaled as it says (DeltaRule). The error is a product that the write needs anyway: an
/// adaptive filter needs no read for it. For rules of the kernels with a delta term, in float and
/// double, RecursiveLeastSquares, and FeatureMapped ones of these.
///
///     fw::write(filter, state, {samples, desired, mu / energy}, {error});
template <GivesErrors M>
EIGEN_ALWAYS_INLINE void write(const M& m, StateOf<M>& state, WriteToken<M> input,
                               ErrorToken<M> error) {
  detail::check_write(m, state, input);
  detail::check_token(M::name, error,
                      detail::ErrorRecord<MemberExtent>{m.signature().write().value});
  detail::check_apart(M::name, error, input);
  detail::scan_implementation(m).write(state, input, error.error);
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

/// Writes, then reads, or reads first for rules with `reads_first`. Overwrites `output`, which may
/// be the value itself for rules of the kernels (Capabilities::in_place). Inline, because passing
/// views to a function takes as long as a step of a small state.
template <Memory M>
EIGEN_ALWAYS_INLINE void step(const M& m, StateOf<M>& state, WriteToken<M> input,
                              ReadToken<M> query, OutToken<M> output) {
  detail::check_step(m, state, input, query, output);
  detail::run_step(m, state, input, query, output);
}

}  // namespace fw

// Behind the functions above, so that a compiler lists these first.
#include <fastweights/algorithms/mistakes.hpp>
