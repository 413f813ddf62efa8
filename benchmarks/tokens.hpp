#pragma once

#include <fastweights/any_memory/any_memory.hpp>
#include <fastweights/testing/any_sequences.hpp>
#include <vector>

#include "heads.hpp"

/// \file
/// The random tokens of several heads.

namespace measure {

/// Views of what one head, or all heads, write, read with and give.
template <class S> struct TokenViews {
  std::vector<fw::AnyView<const S>> inputs, queries;
  std::vector<fw::AnyView<S>> outputs;
};

/// Head h has tokens h·steps to (h + 1)·steps of one sequence.
template <class S> struct Tokens {
  fw::testing::AnySequences<S> sequences;
  TokenViews<S> all;
  std::vector<TokenViews<S>> heads;

  /// Positive numbers, which every memory takes.
  Tokens(const fw::AnyMemory<S>& m, Index steps, Index count);
  TokenViews<S>& of(Index head) { return heads[static_cast<std::size_t>(head)]; }
  /// W is null for a memory without a matrix of this name, which throws std::logic_error.
  Arrays arrays(Index head, void* W);
};

/// The numbers of a state, without its counters.
std::size_t bytes_of(const fw::detail::Object& state);
void set_zero(const fw::detail::Object& state);
/// The data of its matrix W, or null.
void* matrix_of(const fw::detail::Object& state);

extern template struct Tokens<float>;
extern template struct Tokens<double>;

}  // namespace measure
