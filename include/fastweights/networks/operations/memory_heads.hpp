#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <fastweights/any_memory/any_memory.hpp>
#include <vector>

/// \file
/// What the operation of a memory keeps for its heads, and the arguments of one head's calls.

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// The states of the heads of one sequence, then of the next, …
template <class S> struct MemoryHeads {
  std::vector<AnyState<S>> heads;  ///< of one memory
  static constexpr auto names = fw::names("heads");
};

/// One member of what heads write or read with.
struct HeadMember {
  Index heads = 1;  ///< in the value that is the input; consecutive heads of the memory share one
  Index rows = 1;   ///< of one head
  Index width = 1;  ///< columns of a token
};

/// The views of what one head writes and reads with. They take no heap, because every token needs
/// them.
template <class T> class HeadViews {
 public:
  /// For a memory that writes and reads with so many members.
  HeadViews(std::size_t writes, std::size_t reads) : writes_(writes), reads_(reads) {}

  /// View i of what is written, then of what is read with.
  AnyView<T>& operator[](std::size_t i) { return views_[i]; }
  /// What is written.
  AnyViews<T> written() const { return all().first(writes_); }
  /// What is read with.
  AnyViews<T> queries() const { return all().subspan(writes_, reads_); }

 private:
  static constexpr std::size_t most = 12;  // members of a record

  std::span<const AnyView<T>> all() const { return views_; }

  std::array<AnyView<T>, 2 * most> views_;
  std::size_t writes_, reads_;
};

/// Sets every entry of a state to zero.
template <class S> void set_zero(const AnyState<S>& state) {
  const fw::detail::Object object = state.object();
  fw::detail::visit_leaves(&object, 1, [](const fw::detail::Leaf* leaf, const auto&) {
    const auto bytes = std::size_t(leaf->size()) * leaf->width;
    std::fill_n(static_cast<std::byte*>(leaf->data), bytes, std::byte{});
  });
}

/// Calls f(leaf) for every slow weight of a state.
template <class S, class F> void for_each_slow_weight(const AnyState<S>& state, const F& f) {
  const fw::detail::Object object = state.object();
  for (std::size_t i = 0; i < object.type->count(object.address); ++i) {
    const fw::detail::Object part = object.type->part(object.address, i);
    if (part.name == "slow")
      fw::detail::visit_leaves(&part, 1,
                               [&](const fw::detail::Leaf* leaf, const auto&) { f(*leaf); });
  }
}

}  // namespace fw::networks
