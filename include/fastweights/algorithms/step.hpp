#pragma once

#include <fastweights/core/check.hpp>
#include <fastweights/core/state.hpp>

/// \file
/// One token at a time. After construction none of these allocates or locks (a dynamic rule whose
/// temporaries exceed Eigen's EIGEN_STACK_ALLOCATION_LIMIT, 128 KiB together, takes heap for them;
/// a fixed size may not exceed it in one matrix). Two things are the program's: where Eigen knows
/// no alloca (bare metal, and clang for Thumb) it takes heap for the temporaries of dynamic rules,
/// so define EIGEN_ALLOCA there or take fixed sizes; and with OpenMP its larger products, as of a
/// memory of chunks, start threads and take heap unless Eigen::setNbThreads(1) was called.
///
/// An output must not overlap an input. All throw std::invalid_argument, naming the member, when a
/// size does not fit, and std::length_error when a memory is full that was told to refuse then; the
/// state is unchanged.
///
///     fw::step(memory, state, {k, v, beta}, {q}, {y});

namespace fw {

namespace detail {

template <Memory M> EIGEN_ALWAYS_INLINE void check_write(const M& m, const WriteToken<M>& input) {
  const auto extents = m.signature().write();
  check_token(M::name, input, extents);
  check_chunks(M::name, input, extents);
}

template <Memory M>
EIGEN_ALWAYS_INLINE void check_read(const M& m, const ReadToken<M>& query,
                                    const OutToken<M>& output) {
  const auto signature = m.signature();
  check_token(M::name, query, signature.read());
  check_token(M::name, output, signature.out());
  check_chunks(M::name, output, signature.out(), check_chunks(M::name, query, signature.read()));
}

template <Memory M>
EIGEN_ALWAYS_INLINE void run_step(const M& m, StateOf<M>& s, WriteToken<M> w, ReadToken<M> r,
                                  OutToken<M> y) {
  if constexpr (FusedStep<M>) {
    m.step(s, w, r, y);
  } else if constexpr (reads_first<M>()) {
    m.read(s, r, y);
    m.write(s, w);
  } else {
    m.write(s, w);
    m.read(s, r, y);
  }
}

}  // namespace detail

/// Writes one token into the state.
template <Memory M> void write(const M& m, StateOf<M>& state, WriteToken<M> input) {
  detail::check_state(M::name, state, m.state_extents());
  detail::check_write(m, input);
  m.write(state, input);
}

/// Reads the state with one query; overwrites `output`.
template <Memory M>
void read(const M& m, StateOf<M>& state, ReadToken<M> query, OutToken<M> output) {
  detail::check_state(M::name, state, m.state_extents());
  detail::check_read(m, query, output);
  m.read(state, query, output);
}

template <PureRead M>
void read(const M& m, const StateOf<M>& state, ReadToken<M> query, OutToken<M> output) {
  detail::check_state(M::name, state, m.state_extents());
  detail::check_read(m, query, output);
  m.read(state, query, output);
}

/// Writes, then reads (the other way round for rules that read first); overwrites `output`.
/// In line, as what it takes to pass views to a function is as long as a step of a small state.
template <Memory M>
EIGEN_ALWAYS_INLINE void step(const M& m, StateOf<M>& state, WriteToken<M> input,
                              ReadToken<M> query, OutToken<M> output) {
  detail::check_state(M::name, state, m.state_extents());
  detail::check_write(m, input);
  detail::check_read(m, query, output);
  detail::run_step(m, state, input, query, output);
}

}  // namespace fw
