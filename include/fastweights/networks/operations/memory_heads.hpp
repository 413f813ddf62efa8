#pragma once

#include <array>
#include <cstddef>
#include <fastweights/any_memory/any_memory.hpp>
#include <fastweights/networks/operations/head_states.hpp>
#include <span>

/// \file
/// The arguments of the calls of one head of a memory.

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// One member of what heads write, read with or give.
struct HeadMember {
  Index heads = 1;    ///< in the value that holds them
  Index rows = 1;     ///< of one head
  Index width = 1;    ///< columns of a token
  Index sharing = 1;  ///< heads of the memory that share one
};

/// Views of what the calls of one head take. They are made once a pass and then move from head to
/// head, without heap, because every token needs them.
template <class T> class HeadViews {
 public:
  /// Forgets the members of the pass before.
  void clear() { count_ = 0; }
  /// Adds a member. `view` is that of head 0 and the first token; the other heads are `head`
  /// numbers apart, tokens `token`, and `sharing` heads of the memory share one. A token has
  /// `width` columns.
  void add(const AnyView<T>& view, Index head, Index token, Index sharing, Index width) {
    views_[count_] = view;
    places_[count_++] = {view.data, head, token, sharing, width};
  }
  /// Head 0 of the first token of member i is at another address than in the pass before.
  void set_first(std::size_t i, T* first) { places_[i].first = first; }
  /// Moves all views to `steps` tokens of head h from token `first` on.
  void move_to(Index h, Index first, Index steps) {
    for (std::size_t i = 0; i < count_; ++i) {
      const Place& at = places_[i];
      const Index own = at.sharing == 1 ? h : h / at.sharing;
      views_[i].data = at.first + own * at.head + first * at.token;
      views_[i].cols = steps * at.width;
    }
  }

  /// The views, in order.
  operator AnyViews<T>() const {  // NOLINT: implicit by design
    return std::span<const AnyView<T>>(views_.data(), count_);
  }

 private:
  static constexpr std::size_t most = 12;  // members of a record
  struct Place {
    T* first = nullptr;
    Index head = 0, token = 0, sharing = 1, width = 1;
  };

  std::array<AnyView<T>, most> views_;
  std::array<Place, most> places_;
  std::size_t count_ = 0;
};

/// Sets every entry of a state to zero.
template <class S> void set_zero(const AnyState<S>& state) {
  const fw::detail::Object object = state.object();
  fw::detail::visit_leaves(&object, 1, [](const fw::detail::Leaf* leaf, const auto&) {
    const auto bytes = std::size_t(leaf->size()) * leaf->width;
    std::fill_n(static_cast<std::byte*>(leaf->data), bytes, std::byte{});
  });
}

/// into += from, for gradients of a state. Counters have none. Arrays that grow get the columns of
/// those in `from`: others are 0.
template <class S> void add_gradient(const AnyState<S>& into, const AnyState<S>& from) {
  const std::array objects{into.object(), from.object()};
  fw::detail::set_columns(objects[0], objects[1]);
  fw::detail::visit_leaves(objects.data(), objects.size(),
                           [](const fw::detail::Leaf* leaves, const auto&) {
                             if (leaves->scalar == fw::detail::scalar_kind<S>())
                               leaves[0].entries<S>() += leaves[1].entries<S>();
                           });
}

}  // namespace fw::networks
