#pragma once

#include <cstddef>
#include <fastweights/core/check.hpp>
#include <fastweights/core/leaves.hpp>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// \file
/// Earlier states that share the memory of what did not change.

namespace fw::inline FASTWEIGHTS_ABI {

/// The numbers of a state at one time, in pages of 4 KiB. A page that is bit for bit that of an
/// earlier snapshot is shared with it, and all pages of zeros are one. So a snapshot of a cache of
/// tokens takes the memory of its new tokens, a page more for every array of every head, and 1/256
/// of the cache for the places of pages:
///
///     fw::Snapshot prompt(state);             // a copy
///     network.forward(state, question, logits, trace);
///     fw::Snapshot asked(state, prompt);      // shares the prompt's keys and values
///     prompt.restore(network, state);         // another question
///
/// It takes the state of a memory, of a network, or any other record of numbers whose bytes are
/// their value. A snapshot is a value; a copy shares all pages, also with snapshots of other
/// threads. Taking one reads the state and the earlier snapshot; restoring one copies the state,
/// and allocates for caches that grow.
class Snapshot {
 public:
  /// No numbers.
  Snapshot() = default;
  /// The numbers of a state. Pages that `before` has too are shared. Throws std::invalid_argument
  /// for a scalar whose bytes are not its value, such as one of automatic differentiation.
  template <detail::AnyRecord State>
  explicit Snapshot(const State& state, const Snapshot& before = {}) {
    take(detail::object(state), before);
  }

  /// Gives a state these numbers. Throws std::invalid_argument, and changes nothing, unless it has
  /// the members, scalars and shapes of the one that was taken; a cache that grows may have any
  /// columns. Settings that are no numbers of a state, such as the room of a cache, are not
  /// compared.
  template <detail::AnyRecord State>
  requires(!std::is_const_v<State>) void restore(State& state) const {
    give(detail::object(state));
  }
  /// Gives a state of `owner`, a memory or a network, these numbers. Also refuses, unchanged, what
  /// no run of the owner's tokens can reach: see fw::check_state. It restores a copy first.
  template <class Owner, detail::AnyRecord State>
  requires(!std::is_const_v<State>) void restore(const Owner& owner, State& state) const {
    State restored = state;
    restore(restored);
    check_state(owner, restored);
    state = std::move(restored);
  }

  /// The size of the numbers in bytes.
  std::size_t bytes() const;
  /// The bytes, of these, of the pages that it shares with another snapshot.
  std::size_t shared_bytes(const Snapshot& other) const;

 private:
  using Index = Eigen::Index;
  using Page = std::shared_ptr<const std::byte[]>;
  struct Array {
    std::string path;
    Index rows, cols;
    detail::ScalarKind scalar;
    std::size_t width;  // of a scalar
    std::vector<Page> pages;

    std::size_t bytes() const { return std::size_t(rows * cols) * width; }
  };
  static constexpr std::size_t page_size = 4096;

  static Page page_of(const std::byte* from, std::size_t bytes);
  void take(const detail::Object& state, const Snapshot& before);
  void give(const detail::Object& state) const;
  void check(const detail::Object& state) const;
  static std::size_t page_bytes(const Array& array, std::size_t page);

  std::vector<Array> arrays_;
};

}  // namespace fw

#ifndef FASTWEIGHTS_COMPILED
#include <fastweights/core/implementation/snapshot.hpp>
#endif
