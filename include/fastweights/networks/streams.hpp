#pragma once

#include <algorithm>
#include <fastweights/core/views.hpp>
#include <fastweights/layers/relay.hpp>
#include <span>
#include <vector>

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// Tokens of every sequence so far.
using Positions = Eigen::Matrix<Index, Dynamic, 1>;

/// Options of a pass of a network.
struct PassOptions {
  Pass pass = Pass::infer;
  /// Tokens of each of the B sequences, which follow one another in the columns. 0 leaves a
  /// sequence as it is. Empty: all sequences have the same number.
  std::span<const Index> lengths = {};
};

/// Places of the tokens of every sequence in a pass: those of sequence b are the columns first(b)
/// to first(b) + steps(b) − 1.
class Streams {
 public:
  /// The number of sequences, B.
  Index count() const { return Index(positions_.size()); }
  /// The first column of a sequence.
  Index first(Index b) const { return starts_[std::size_t(b)]; }
  /// Its tokens in this pass, at least 0.
  Index steps(Index b) const { return starts_[std::size_t(b) + 1] - starts_[std::size_t(b)]; }
  /// Its tokens before this pass.
  Index position(Index b) const { return positions_[std::size_t(b)]; }
  /// Its tokens that the same call reads after this pass.
  Index later(Index b) const { return later_.empty() ? 0 : later_[std::size_t(b)]; }
  /// The tokens of the longest sequence.
  Index most_steps() const {
    Index most = 0;
    for (Index b = 0; b < count(); ++b) most = std::max(most, steps(b));
    return most;
  }

  /// No sequences.
  void clear() {
    starts_.assign(1, 0);
    positions_.clear();
    later_.clear();
  }
  /// One more sequence.
  void add(Index position, Index steps) {
    positions_.push_back(position);
    starts_.push_back(starts_.back() + steps);
  }
  /// Sets the tokens that come after this pass; empty: none.
  void set_later(std::span<const Index> tokens) { later_.assign(tokens.begin(), tokens.end()); }

 private:
  std::vector<Index> starts_ = {0}, positions_, later_;
};

}  // namespace fw::networks
