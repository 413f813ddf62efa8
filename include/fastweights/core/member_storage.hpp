#pragma once

#include <fastweights/core/record.hpp>
#include <fastweights/core/views.hpp>
#include <limits>

/// \file
/// A member storage decides the types of a record's members, so that a rule declares its inputs,
/// outputs and state once:
///
///     template <class C> struct Write {
///       fw::vec<C, Dk> key;  fw::vec<C, Dv> value;  fw::num<C> beta;
///       static constexpr auto names = fw::names("key", "value", "beta");
///       static constexpr auto roles = fw::roles(Role::key, Role::value, Role::strength);
///     };
///
/// | storage (S or const S) | a vec<C, D> is | a num<C> is |
/// |---|---|---|
/// | `Extents` | its size | its size |
/// | `Owned<S>` | `Matrix<S, D, 1>` | `S` |
/// | `OwnedSequence<S>` | `Matrix<S, D, Dynamic>` | `Matrix<S, 1, Dynamic>` |
/// | `Token<S>` | a view of one column | `S&`, so that a missing number does not compile |
/// | `Sequence<S>` | a view of T columns | a view of T numbers |

namespace fw::inline FASTWEIGHTS_ABI {

/// The size of a counter: nothing to say.
struct CounterExtent {};

/// The storage of sizes: every member is the number of its rows and columns.
struct Extents {
  template <int Rows, int Width> using array = MemberExtent;  ///< of a matrix or vector
  using scalar = MemberExtent;                                ///< of a number
  using count = CounterExtent;                                ///< of a counter
};

/// The storage of values: every member owns its numbers, for one token or for a state.
template <class S> struct Owned {
  /// A matrix or vector.
  template <int Rows, int Width> using array = detail::PlainArray<S, Rows, Width>;
  using scalar = S;     ///< a number
  using count = Index;  ///< a counter
};

/// The storage of sequences that own their numbers, one token per column.
template <class S> struct OwnedSequence {
  /// An array of vectors, or of matrices side by side.
  template <int Rows, int Width> using array = detail::PlainArray<S, Rows, Dynamic>;
  using scalar = detail::PlainArray<S, 1, Dynamic>;  ///< of numbers, in one row
};

/// The storage of one token that refers to the caller's numbers. `S` may be const.
template <class S> struct Token {
  /// A view of a matrix or vector.
  template <int Rows, int Width> using array = TokenView<S, Rows, Width>;
  using scalar = S&;  ///< a reference to a number
};

/// The storage of a sequence that refers to the caller's numbers. `S` may be const.
template <class S> struct Sequence {
  /// A view of one token per column.
  template <int Rows, int Width> using array = SequenceView<S, Rows, Width>;
  using scalar = ScalarSequence<S>;  ///< a view of one number per token
};

/// A vector of D entries per step.
template <class C, int D> using vec = typename C::template array<D, 1>;

/// A `Rows` × `Width` matrix per step.
template <class C, int Rows, int Width> using mat = typename C::template array<Rows, Width>;

/// One number per step.
template <class C> using num = typename C::scalar;

/// A counter in a state: it has no gradient and is saved with the state. It is 0 to max_count, and
/// a rule may narrow this range (see LimitsCounts in core/memory.hpp).
template <class C> using count = typename C::count;

/// The largest counter of a legal state. A counter that starts there has room for as many tokens
/// again, so that adding the tokens of one call does not overflow; the next call refuses the state.
inline constexpr Index max_count = std::numeric_limits<Index>::max() / 2;

}  // namespace fw
