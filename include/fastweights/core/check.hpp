#pragma once

#include <algorithm>
#include <fastweights/core/errors.hpp>
#include <fastweights/core/memory.hpp>
#include <fastweights/core/overlap.hpp>
#include <fastweights/core/state_overlap.hpp>
#include <string_view>

/// \file
/// The checks at the public boundary. Each throws std::invalid_argument before anything is changed.
/// The message names the rule, the member, the given size and the expected size.

namespace fw::inline FASTWEIGHTS_ABI::detail {

// The number of steps in `columns` columns; the last step may have fewer columns.
inline Index steps_in(Index columns, const MemberExtent& step) {
  return (columns + step.width - 1) / step.width;
}

// The columns that one token adds to a sequence; a member for chunks grows by one column.
inline MemberExtent per_token(const MemberExtent& step) {
  return {step.rows, step.chunks ? 1 : step.width};
}

template <class View> inline constexpr bool has_extent = requires(const View& v) { v.given(); };

template <class R, class E>
EIGEN_ALWAYS_INLINE void check_token(std::string_view rule, const R& token, const E& extents) {
  for_each_member(
      [&](std::string_view name, const auto& view, const MemberExtent& expected) {
        if constexpr (has_extent<decltype(view)>) {
          const MemberExtent& given = view.given();
          if (given.rows != expected.rows)
            throw_mismatch(rule, name, given.rows, "rows", expected.rows, "the memory");
          if (given.width != expected.width && (!expected.chunks || given.width < 1))
            throw_mismatch(rule, name, given.width, "columns", expected.width, "the memory");
        }
      },
      token, extents);
}

template <class R, class E>
void check_sequence(std::string_view rule, const R& sequence, const E& extents, Index steps) {
  for_each_member(
      [&](std::string_view name, const auto& view, const MemberExtent& expected) {
        const MemberExtent& given = view.given();
        if (given.rows != expected.rows)
          throw_mismatch(rule, name, given.rows, "rows", expected.rows, "the memory");
        if (steps_in(given.width, expected) != steps ||
            (!expected.chunks && given.width != expected.width * steps))
          throw_mismatch(rule, name, given.width, "columns", expected.width * steps,
                         "the sequence");
      },
      sequence, extents);
}

// All chunk members of one step must have the same number of columns. Returns this number, or
// `columns` if the record has no chunk members. `columns` is the number that other records of the
// step have, or −1 if it is not known yet.
template <class R, class E>
EIGEN_ALWAYS_INLINE Index check_chunks(std::string_view rule, const R& record, const E& extents,
                                       Index columns = -1) {
  for_each_member(
      [&](std::string_view name, const auto& view, const MemberExtent& expected) {
        if constexpr (has_extent<decltype(view)>) {
          if (!expected.chunks) return;
          const Index given = view.given().width;
          if (columns >= 0 && given != columns)
            throw_mismatch(rule, name, given, "columns", columns, "the rest of the chunk");
          columns = given;
        }
      },
      record, extents);
  return columns;
}

EIGEN_ALWAYS_INLINE void check_count(std::string_view owner, const CountRange& count) {
  if (count.given < count.least || count.given > count.most)
    throw_count(owner, count.name, count.given, count.least, count.most, count.why);
}

// Sizes and counters of a state or of its gradient, whose counters are 0.
template <class R, class E>
EIGEN_ALWAYS_INLINE void check_state(std::string_view rule, const R& state, const E& extents) {
  for_each_member(
      [&](std::string_view name, const auto& member, const auto& expected) {
        using T = std::remove_cvref_t<decltype(member)>;
        if constexpr (Record<T>) {
          check_state(rule, member, expected);
        } else if constexpr (std::is_base_of_v<Eigen::DenseBase<T>, T>) {
          if (member.rows() != expected.rows)
            throw_mismatch(rule, name, member.rows(), "rows in the state", expected.rows,
                           "the memory");
          if (member.cols() != expected.width)
            throw_mismatch(rule, name, member.cols(), "columns in the state", expected.width,
                           "the memory");
        } else if constexpr (std::is_integral_v<T>) {
          check_count(rule, {name, member});
        }
      },
      state, extents);
}

}  // namespace fw::detail

namespace fw::inline FASTWEIGHTS_ABI {

/// Throws std::invalid_argument unless `state` is one that `owner`, a memory or a layer, can reach
/// by its writes, as far as sizes and counters tell: names the member, what it is and what is
/// expected. fw::step, scan and the others, and forward of a layer, check their state themselves.
/// For a memory it costs two comparisons for each member.
template <class Owner, class State>
EIGEN_ALWAYS_INLINE void check_state([[maybe_unused]] const Owner& owner,
                                     [[maybe_unused]] const State& state) {
  if constexpr (Memory<Owner>) {
    detail::check_state(Owner::name, state, owner.state_extents());
    if constexpr (LimitsCounts<Owner>)
      for (const CountRange& count : owner.count_ranges(state))
        detail::check_count(Owner::name, count);
  } else if constexpr (requires { owner.check_state(state); }) {
    owner.check_state(state);
  }
}

}  // namespace fw

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// The number of steps of a sequence, by its first member.
template <class R, class E> Index steps_of(const R& sequence, const E& extents) {
  return steps_in(std::get<0>(members(sequence)).given().width, std::get<0>(members(extents)));
}

template <class TokenRecord, class R, class E, std::size_t... I>
EIGEN_ALWAYS_INLINE TokenRecord token_at([[maybe_unused]] const R& sequence,
                                         [[maybe_unused]] const E& extents,
                                         [[maybe_unused]] Index t, std::index_sequence<I...>) {
  return {std::get<I>(members(sequence)).token(t, std::get<I>(members(extents)))...};
}
/// Step t of a sequence record, as a token record.
template <class TokenRecord, class R, class E>
EIGEN_ALWAYS_INLINE TokenRecord token_at(const R& sequence, const E& extents, Index t) {
  return token_at<TokenRecord>(sequence, extents, t, std::make_index_sequence<member_count<R>>{});
}

template <class View>
View columns_of(const View& sequence, const MemberExtent& step, Index first, Index count) {
  const Index left = sequence.given().width - first * step.width;
  return sequence.columns(first * step.width, std::min(left, count * step.width));
}

/// `count` steps of a sequence record from step `first` on.
template <class R, class E> R steps(const R& sequence, const E& extents, Index first, Index count) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return R{
        columns_of(std::get<I>(members(sequence)), std::get<I>(members(extents)), first, count)...};
  }
  (std::make_index_sequence<member_count<R>>{});
}

}  // namespace fw::detail
