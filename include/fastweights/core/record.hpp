#pragma once

#include <array>
#include <cstddef>
#include <fastweights/core/abi.hpp>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

/// \file
/// A record is a class whose data members are all public and all listed, in order, by a static
/// member `names`. The inputs, outputs and states of rules and the parameters of layers are
/// records. Scans, gradients, saving and optimisers iterate over records and know no rule by name.
///
///     struct State {
///       Eigen::MatrixXf W;
///       static constexpr auto names = fw::names("W");
///     };
///
/// A member may be a record itself, or a std::vector of records. The number of names must equal the
/// number of members, otherwise the record does not compile.

namespace fw::inline FASTWEIGHTS_ABI {

/// The names of a record's members, in the order of their declaration.
template <class... Names>
constexpr std::array<std::string_view, sizeof...(Names)> names(const Names&... each) {
  return {std::string_view(each)...};
}

/// A class with named members.
template <class R>
concept Record = requires {
  std::remove_cvref_t<R>::names.size();
};

/// The number of members of a record.
template <Record R>
inline constexpr std::size_t member_count = std::remove_cvref_t<R>::names.size();

/// References to a record's members, in order.
template <Record R> constexpr auto members(R& r) {
  constexpr std::size_t n = member_count<R>;
  static_assert(n <= 12, "fw::members: a record has at most 12 members; nest records to hold more");
  if constexpr (n == 0) {
    return std::tuple<>();
  } else if constexpr (n == 1) {
    auto& [a] = r;
    return std::tie(a);
  } else if constexpr (n == 2) {
    auto& [a, b] = r;
    return std::tie(a, b);
  } else if constexpr (n == 3) {
    auto& [a, b, c] = r;
    return std::tie(a, b, c);
  } else if constexpr (n == 4) {
    auto& [a, b, c, d] = r;
    return std::tie(a, b, c, d);
  } else if constexpr (n == 5) {
    auto& [a, b, c, d, e] = r;
    return std::tie(a, b, c, d, e);
  } else if constexpr (n == 6) {
    auto& [a, b, c, d, e, f] = r;
    return std::tie(a, b, c, d, e, f);
  } else if constexpr (n == 7) {
    auto& [a, b, c, d, e, f, g] = r;
    return std::tie(a, b, c, d, e, f, g);
  } else if constexpr (n == 8) {
    auto& [a, b, c, d, e, f, g, h] = r;
    return std::tie(a, b, c, d, e, f, g, h);
  } else if constexpr (n == 9) {
    auto& [a, b, c, d, e, f, g, h, i] = r;
    return std::tie(a, b, c, d, e, f, g, h, i);
  } else if constexpr (n == 10) {
    auto& [a, b, c, d, e, f, g, h, i, j] = r;
    return std::tie(a, b, c, d, e, f, g, h, i, j);
  } else if constexpr (n == 11) {
    auto& [a, b, c, d, e, f, g, h, i, j, k] = r;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k);
  } else {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l] = r;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l);
  }
}

namespace detail {

// Converts to the type of any member.
struct AnyMember {
  template <class T> operator T() const;
};

// True if R can be initialised from as many values.
template <class R, std::size_t... I> constexpr bool takes_values(std::index_sequence<I...>) {
  return requires { R{(static_cast<void>(I), AnyMember())...}; };
}
template <class R, std::size_t N>
inline constexpr bool takes = takes_values<R>(std::make_index_sequence<N>{});

// False for a record whose `names` do not have one name per member. Counts the members of an
// aggregate; it trusts other classes.
template <class R> constexpr bool names_every_member() {
  if constexpr (!Record<R> || !std::is_aggregate_v<R>)
    return true;
  else if constexpr (!takes<R, 1>)
    return true;
  else
    return takes<R, member_count<R>> && !takes<R, member_count<R> + 1>;
}

}  // namespace detail

/// The type of member I of record R.
template <class R, std::size_t I>
using member_t =
    std::remove_reference_t<std::tuple_element_t<I, decltype(members(std::declval<R&>()))>>;

namespace detail {

template <std::size_t I, class F, class First, class... Rest>
constexpr void visit_member(F& f, First& first, Rest&... rest) {
  f(First::names[I], std::get<I>(members(first)), std::get<I>(members(rest))...);
}

template <class F, std::size_t... I, class First, class... Rest>
constexpr void visit_members(F& f, std::index_sequence<I...>, First& first, Rest&... rest) {
  (visit_member<I>(f, first, rest...), ...);
}

template <class To, class From, class F, std::size_t... I>
constexpr To make_record([[maybe_unused]] From& from, [[maybe_unused]] F& f,
                         std::index_sequence<I...>) {
  return To{f.template operator()<member_t<To, I>>(std::get<I>(members(from)))...};
}

}  // namespace detail

/// Calls f(name, member of first, the same member of each of rest) for every member in order.
/// The records must have the same members; the names are those of the first.
template <class F, Record First, Record... Rest>
constexpr void for_each_member(F&& f, First& first, Rest&... rest) {
  detail::visit_members(f, std::make_index_sequence<member_count<First>>{}, first, rest...);
}

/// Builds a record of type To from one with the same members: each member of the result is
/// f.template operator()<its type>(the member of `from`).
template <Record To, Record From, class F> constexpr To make_record(From&& from, F&& f) {
  static_assert(member_count<To> == member_count<From>);
  return detail::make_record<To>(from, f, std::make_index_sequence<member_count<To>>{});
}

/// True if T is a std::vector of records, which is a member like a record.
template <class T> inline constexpr bool is_record_list = false;
template <Record R, class A> inline constexpr bool is_record_list<std::vector<R, A>> = true;

/// Calls f(member, the same member of each of rest) for every member that is not itself a record,
/// at any depth. Does not allocate.
template <class F, class First, class... Rest>
void for_each_leaf(F&& f, First& first, Rest&... rest) {
  using T = std::remove_const_t<First>;
  if constexpr (Record<T>) {
    for_each_member([&f](std::string_view, auto&... member) { for_each_leaf(f, member...); }, first,
                    rest...);
  } else if constexpr (is_record_list<T>) {
    for (std::size_t i = 0; i < first.size(); ++i) for_each_leaf(f, first[i], rest[i]...);
  } else {
    f(first, rest...);
  }
}

/// As for_each_leaf, but calls f(path, member, ...) with the dotted path of the member:
/// "blocks.0.norm.weight".
template <class F, class First, class... Rest>
void for_each_named_leaf(F&& f, const std::string& path, First& first, Rest&... rest) {
  using T = std::remove_const_t<First>;
  const std::string prefix = path.empty() ? path : path + ".";
  if constexpr (Record<T>) {
    for_each_member(
        [&](std::string_view name, auto&... member) {
          for_each_named_leaf(f, prefix + std::string(name), member...);
        },
        first, rest...);
  } else if constexpr (is_record_list<T>) {
    for (std::size_t i = 0; i < first.size(); ++i)
      for_each_named_leaf(f, prefix + std::to_string(i), first[i], rest[i]...);
  } else {
    f(path, first, rest...);
  }
}

}  // namespace fw
