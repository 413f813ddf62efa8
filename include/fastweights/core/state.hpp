#pragma once

#include <fastweights/core/memory.hpp>
#include <type_traits>

/// \file
/// Functions for the states of all rules: initial states, zero gradients, setting to zero.

namespace fw::inline FASTWEIGHTS_ABI {

namespace detail {

template <class T, class E> T zeros(const E& extent) {
  if constexpr (Record<T>)
    return make_record<T>(extent, []<class Member>(const auto& e) { return zeros<Member>(e); });
  else if constexpr (std::is_base_of_v<Eigen::DenseBase<T>, T>)
    return T::Zero(extent.rows, extent.width);
  else
    return T(0);
}

// True if writes make the arrays of a state larger.
template <Memory M> bool state_grows(const M& m) {
  const auto extents = m.state_extents();
  bool grows = false;
  for_each_leaf(
      [&]<class E>(const E& extent) {
        if constexpr (std::is_same_v<E, MemberExtent>) grows = grows || extent.grows;
      },
      extents);
  return grows;
}

}  // namespace detail

/// The state of m before any token: all entries zero, unless the rule has its own initial_state().
template <Memory M> StateOf<M> initial_state(const M& m) {
  if constexpr (requires { m.initial_state(); })
    return m.initial_state();
  else
    return detail::zeros<StateOf<M>>(m.state_extents());
}

/// A zero gradient for a state of m.
template <Memory M> StateOf<M> zero_gradient(const M& m) {
  return detail::zeros<StateOf<M>>(m.state_extents());
}

/// Sets every entry of a record to zero.
template <Record R> void set_zero(R& record) {
  for_each_leaf(
      [](auto& leaf) {
        if constexpr (requires { leaf.setZero(); })
          leaf.setZero();
        else
          leaf = 0;
      },
      record);
}

}  // namespace fw
