#pragma once

#include <fastweights/any_memory/any_memory.hpp>

/// \file
/// The part of a memory's states that a network learns.

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// Arrays of a memory's state that a network learns.
enum class Learned {
  slow_weights,  ///< those in its record `slow`, which no write changes
  first_state    ///< all that it has before the first token of a sequence
};

/// Calls f(leaf, path) for everything of a state that is learned. Slow weights may be numbers;
/// numbers of a first state are left out.
template <class S, class F>
void for_each_learned(const AnyState<S>& state, Learned learned, const F& f) {
  const bool slow = learned == Learned::slow_weights;
  const auto visit = [&](const fw::detail::Object& part) {
    fw::detail::visit_leaves(&part, 1, [&](const fw::detail::Leaf* leaf, const auto& path) {
      if (slow || leaf->is_array) f(*leaf, path);
    });
  };
  const fw::detail::Object object = state.object();
  if (!slow) return visit(object);
  for (std::size_t i = 0; i < object.type->count(object.address); ++i)
    if (const fw::detail::Object part = object.type->part(object.address, i); part.name == "slow")
      visit(part);
}

/// The gradients of what is learned, of every head of every sequence. They share weights: each has
/// a gradient of its own here, so that threads take them in any order and the sum is in one order,
/// with the same bits.
template <class S> class LearnedGradients {
 public:
  /// Those of so many heads, whose states are like this one.
  void resize(const AnyState<S>& state, Learned learned, Index heads) {
    Index size = 0;
    for_each_learned(state, learned,
                     [&](const fw::detail::Leaf& leaf, const auto&) { size += leaf.size(); });
    heads_.resize(size, heads);
  }
  /// Keeps that of a head, from the gradient of its state.
  void keep(Index head, const AnyState<S>& dstate, Learned learned) {
    S* to = heads_.col(head).data();
    for_each_learned(dstate, learned, [&](const fw::detail::Leaf& leaf, const auto&) {
      Eigen::Map<Eigen::Array<S, Eigen::Dynamic, 1>>(to, leaf.size()) = leaf.entries<S>();
      to += leaf.size();
    });
  }
  /// That of a head, array behind array.
  const S* of(Index head) const { return heads_.col(head).data(); }

 private:
  Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic> heads_;
};

}  // namespace fw::networks
