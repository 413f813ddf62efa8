#pragma once

#include <fastweights/core/memory.hpp>

/// \file
/// What every state can do, whichever rule it belongs to: be made, be zeroed, be compared in size.

namespace fw {

namespace detail {

template <class T, class E> T zeros(const E& extent) {
  if constexpr (Record<T>)
    return make_record<T>(extent, []<class Member>(const auto& e) { return zeros<Member>(e); });
  else if constexpr (std::is_base_of_v<Eigen::DenseBase<T>, T>)
    return T::Zero(extent.rows, extent.width);
  else
    return T(0);
}

}  // namespace detail

/// A state of m that has seen nothing: every entry zero, unless the rule says otherwise.
template <Memory M> StateOf<M> initial_state(const M& m) {
  if constexpr (requires { m.initial_state(); })
    return m.initial_state();
  else
    return detail::zeros<StateOf<M>>(m.state_extents());
}

/// A zero for the gradient of a state of m.
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
