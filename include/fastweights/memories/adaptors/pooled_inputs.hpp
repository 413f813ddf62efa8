#pragma once

#include <array>
#include <fastweights/core/signatures.hpp>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

/// \file
/// The inputs of CachedSegments: those of the memory in it, and one vector more.

namespace fw::inline FASTWEIGHTS_ABI {

namespace detail {

// The type of member I of a record R with the storage C: a number of a token is a reference.
template <class C, class R, std::size_t I>
using StoredMember =
    std::conditional_t<std::is_same_v<member_t<R, I>, std::remove_reference_t<typename C::scalar>>,
                       typename C::scalar, member_t<R, I>>;

template <class T, std::size_t N>
constexpr std::array<T, N + 1> with_last(const std::array<T, N>& first, const T& last) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return std::array<T, N + 1>{first[I]..., last};
  }
  (std::make_index_sequence<N>{});
}

// The names and roles of a record and of the vector `pooled` behind its members.
template <class R> struct PooledNames {
  static constexpr auto names = with_last<std::string_view>(R::names, "pooled");
  static constexpr auto roles = with_last(R::roles, Role::value);
};

// The members of a record R and p, of the size D. Structured bindings need all of them in one
// class.
template <class C, class R, int D, std::size_t N = member_count<R>> struct PooledWrite {
  static_assert(N >= 2 && N <= 6, "CachedSegments takes memories that write 2 to 6 inputs a token");
};
template <class C, class R, int D> struct PooledWrite<C, R, D, 2> {
  StoredMember<C, R, 0> first;
  StoredMember<C, R, 1> second;
  vec<C, D> pooled;
  static constexpr auto names = PooledNames<R>::names;
  static constexpr auto roles = PooledNames<R>::roles;
};
template <class C, class R, int D> struct PooledWrite<C, R, D, 3> {
  StoredMember<C, R, 0> first;
  StoredMember<C, R, 1> second;
  StoredMember<C, R, 2> third;
  vec<C, D> pooled;
  static constexpr auto names = PooledNames<R>::names;
  static constexpr auto roles = PooledNames<R>::roles;
};
template <class C, class R, int D> struct PooledWrite<C, R, D, 4> {
  StoredMember<C, R, 0> first;
  StoredMember<C, R, 1> second;
  StoredMember<C, R, 2> third;
  StoredMember<C, R, 3> fourth;
  vec<C, D> pooled;
  static constexpr auto names = PooledNames<R>::names;
  static constexpr auto roles = PooledNames<R>::roles;
};
template <class C, class R, int D> struct PooledWrite<C, R, D, 5> {
  StoredMember<C, R, 0> first;
  StoredMember<C, R, 1> second;
  StoredMember<C, R, 2> third;
  StoredMember<C, R, 3> fourth;
  StoredMember<C, R, 4> fifth;
  vec<C, D> pooled;
  static constexpr auto names = PooledNames<R>::names;
  static constexpr auto roles = PooledNames<R>::roles;
};
template <class C, class R, int D> struct PooledWrite<C, R, D, 6> {
  StoredMember<C, R, 0> first;
  StoredMember<C, R, 1> second;
  StoredMember<C, R, 2> third;
  StoredMember<C, R, 3> fourth;
  StoredMember<C, R, 4> fifth;
  StoredMember<C, R, 5> sixth;
  vec<C, D> pooled;
  static constexpr auto names = PooledNames<R>::names;
  static constexpr auto roles = PooledNames<R>::roles;
};

}  // namespace detail

/// Write what `Inputs` writes, and p (`pooled`). Read (q, u): a query of the memory and one of the
/// segments (`segment_query`). Members of a write are named as those of `Inputs` where names are
/// text; in C++ they are `first`, `second`, …, `pooled`.
template <class Inputs, int Dp> struct PooledInputs : Inputs {
  Index pooled_size = Dp;  ///< d_p, the rows of p and u

  template <class C> using Write = detail::PooledWrite<C, typename Inputs::template Write<C>, Dp>;
  template <class C> struct Read {
    vec<C, Inputs::key_rows> query;
    vec<C, Dp> segment_query;  ///< u
    static constexpr auto names = fw::names("query", "segment_query");
    static constexpr auto roles = fw::roles(Role::key, Role::value);
  };
  Write<Extents> write() const {
    auto inputs = Inputs::write();
    return std::apply(
        [&](const auto&... each) {
          return Write<Extents>{each..., {pooled_size, 1}};
        },
        members(inputs));
  }
  Read<Extents> read() const { return {{this->dk, 1}, {pooled_size, 1}}; }
};

}  // namespace fw
