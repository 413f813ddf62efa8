#pragma once

#include <algorithm>
#include <cstddef>
#include <fastweights/core/record.hpp>
#include <fastweights/core/views.hpp>
#include <vector>

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// The states of type T of the heads of one sequence, then of the next, …
template <class T> struct HeadStates {
  std::vector<T> heads;  ///< of one memory
  static constexpr auto names = fw::names("heads");

  /// The heads of sequence b of B.
  HeadStates stream(Index b, Index sequences) const {
    const auto each = std::ptrdiff_t(heads.size()) / sequences;
    return {{heads.begin() + b * each, heads.begin() + (b + 1) * each}};
  }
  /// Adds the heads of more sequences.
  void add(const HeadStates& more) {
    heads.insert(heads.end(), more.heads.begin(), more.heads.end());
  }
  /// Takes the heads of sequence b of B out.
  void remove(Index b, Index sequences) {
    const auto each = std::ptrdiff_t(heads.size()) / sequences;
    heads.erase(heads.begin() + b * each, heads.begin() + (b + 1) * each);
  }
  /// The heads of sequence b of B become those of another state.
  void assign(Index b, Index sequences, const HeadStates& other) {
    const auto each = std::ptrdiff_t(heads.size()) / sequences;
    std::copy_n(other.heads.begin() + b * each, each, heads.begin() + b * each);
  }
};

}  // namespace fw::networks
