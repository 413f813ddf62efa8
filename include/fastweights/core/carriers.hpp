#pragma once

#include <fastweights/core/record.hpp>
#include <fastweights/core/views.hpp>
#include <limits>

/// \file
/// A carrier decides the types of a record's members, so that a rule declares its inputs, outputs
/// and state once:
///
///     template <class C> struct Write {
///       fw::vec<C, Dk> key;  fw::vec<C, Dv> value;  fw::num<C> beta;
///       static constexpr auto names = fw::names("key", "value", "beta");
///       static constexpr auto roles = fw::roles(Role::key, Role::value, Role::strength);
///     };
///
/// | carrier (S or const S) | a vec<C, D> is | a num<C> is |
/// |---|---|---|
/// | `Extents` | its size | its size |
/// | `Owned<S>` | `Matrix<S, D, 1>` | `S` |
/// | `OwnedSequence<S>` | `Matrix<S, D, Dynamic>` | `Matrix<S, 1, Dynamic>` |
/// | `Token<S>` | a view of one column | `S&`, so that a missing number does not compile |
/// | `Sequence<S>` | a view of T columns | a view of T numbers |

namespace fw::inline FASTWEIGHTS_ABI {

/// The size of a counter: nothing to say.
struct CounterExtent {};

struct Extents {
  template <int Rows, int Width> using array = MemberExtent;
  using scalar = MemberExtent;
  using count = CounterExtent;
};

template <class S> struct Owned {
  template <int Rows, int Width> using array = detail::PlainArray<S, Rows, Width>;
  using scalar = S;
  using count = Index;
};

template <class S> struct OwnedSequence {
  template <int Rows, int Width> using array = detail::PlainArray<S, Rows, Dynamic>;
  using scalar = detail::PlainArray<S, 1, Dynamic>;
};

template <class S> struct Token {
  template <int Rows, int Width> using array = TokenView<S, Rows, Width>;
  using scalar = S&;
};

template <class S> struct Sequence {
  template <int Rows, int Width> using array = SequenceView<S, Rows, Width>;
  using scalar = ScalarSequence<S>;
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
