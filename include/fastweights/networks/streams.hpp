#pragma once

#include <algorithm>
#include <fastweights/core/views.hpp>
#include <fastweights/layers/layer.hpp>
#include <span>
#include <string>
#include <string_view>
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
  /// The sequence that has this column.
  Index sequence_of(Index column) const {
    return Index(std::upper_bound(starts_.begin(), starts_.end(), column) - starts_.begin()) - 1;
  }
  /// The tokens of the longest sequence.
  Index most_steps() const {
    Index most = 0;
    for (Index b = 0; b < count(); ++b) most = std::max(most, steps(b));
    return most;
  }

  /// Places the tokens of sequences at these positions in `columns`: `lengths` of each, or as many
  /// of all if it is empty. Throws std::invalid_argument, which begins with `owner`, unless they
  /// fit.
  void set(std::string_view owner, const Positions& positions, Index columns,
           std::span<const Index> lengths) {
    const Index b = positions.size();
    clear();
    if (lengths.empty()) {
      const Index steps = columns / fw::detail::check_sequences(owner, b, columns);
      for (const Index position : positions) add(position, steps);
      return;
    }
    if (Index(lengths.size()) != b)
      fw::detail::throw_mismatch(owner, "PassOptions", Index(lengths.size()), "lengths", b,
                                 "the sequences of the state");
    Index left = columns;
    for (Index i = 0; i < b && left >= 0; ++i) {
      const Index steps = lengths[std::size_t(i)];
      left = steps < 0 || steps > left ? -1 : left - steps;
      add(positions[i], steps);
    }
    if (left != 0)
      fw::detail::throw_invalid({owner, ": the lengths do not add up to the ",
                                 std::to_string(columns), " tokens, or one is below 0"});
  }
  /// Sets the positions.
  void move_to(const Positions& positions) {
    positions_.assign(positions.begin(), positions.end());
  }
  /// Adds the tokens of this pass to the positions.
  void advance(Positions& positions) const {
    for (Index b = 0; b < count(); ++b) positions[b] += steps(b);
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

/// A token of a prompt whose output is wanted: token `step` of a sequence, in column `to`.
struct ChosenToken {
  Index sequence, step, to;
};

}  // namespace fw::networks
