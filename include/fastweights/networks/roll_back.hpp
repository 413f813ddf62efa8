#pragma once

#include <algorithm>
#include <fastweights/core/errors.hpp>
#include <fastweights/core/leaves.hpp>
#include <fastweights/networks/streams.hpp>
#include <string>

/// \file
/// The record that a state keeps of its last tokens, so that they can be rolled back.
/// Every operation keeps two checkpoints of its state and its inputs since the older one. A roll
/// back moves the number of kept tokens alone. The next pass returns to the last checkpoint that is
/// not too new, and shows the operation its inputs from there on again, together with the new
/// tokens. No operation has to know how its state looked after every token of a pass.

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// Options of the state of a network.
struct StateOptions {
  Index sequences = 1;  ///< B
  Index roll_back = 0;  ///< R, the tokens of each sequence that can be rolled back
};

/// The kept tokens of one sequence, counted from the older checkpoint on.
struct KeptTokens {
  Index kept = 0;   ///< tokens that the sequence has
  Index at = 0;     ///< tokens that the states have seen
  Index newer = 0;  ///< tokens before the newer checkpoint; 0 without one
  Index older = 0;  ///< which of the two checkpoints is the older one
  Index left = 0;   ///< tokens that can be rolled back: at most R, and fewer after a roll back
  Index taken = 0;  ///< tokens that operations with a roll back of their own have yet to roll back
  Eigen::Matrix<int, 1, Dynamic> ids;  ///< symbols of the kept tokens, if the network takes symbols
  static constexpr auto names = fw::names("kept", "at", "newer", "older", "left", "taken", "ids");

  /// True if the states are ahead of the sequence.
  bool is_ahead() const { return at > kept; }
  /// The checkpoint from which the states continue, where they are ahead.
  Index last_checkpoint() const { return newer > 0 && newer <= kept ? 1 - older : older; }
  /// The states are at that checkpoint now, unless they were not ahead.
  void return_to_checkpoint() {
    if (newer > kept) newer = 0;
    if (is_ahead()) at = newer;
  }
  /// A pass has added tokens, and dropped the oldest ones.
  void advance(Index dropped, Index added, Index roll_back) {
    kept += added - dropped;
    at = kept;
    left = std::min(roll_back, left + added);
  }
};

namespace detail {

// Tokens between two checkpoints of a state that takes `roll_back` tokens back. A checkpoint is a
// copy, so even a state that rolls back one token has them this far apart.
inline Index checkpoint_distance(Index roll_back) { return std::max<Index>(roll_back, 8); }
// Tokens that are kept at most.
inline Index most_kept(Index roll_back) { return 2 * checkpoint_distance(roll_back); }

// The tokens that a pass replays, keeps and adds for one sequence, the same for every operation.
struct TokenMoves {
  Index steps = 0;        // new tokens
  Index from = 0;         // tokens that the states have seen
  Index kept = 0;         // tokens before the new ones
  Index dropped = 0;      // tokens before the next older checkpoint
  Index older = 0;        // which checkpoint is the older one, before the pass
  bool cuts = false;      // the older checkpoint is that after `dropped` tokens, in this pass
  bool advances = false;  // the newer checkpoint becomes the older one
  bool marks = false;     // the newer checkpoint is that before this pass
  Index newer = 0;        // tokens before the newer checkpoint, after the pass

  Index end() const { return kept + steps; }
  // Tokens are seen in two stretches, from begin(0) and begin(1) on.
  Index begin(int stretch) const { return stretch == 0 ? from : std::max(from, dropped); }
  Index end(int stretch) const { return stretch == 1 ? end() : cuts ? dropped : from; }
  // True if the operation sees the new tokens, all at once and no others.
  bool is_plain() const { return steps == 0 || (from == kept && end(0) == from); }
};

// After the pass there are as many tokens as can be rolled back, if the sequence has them, and at
// most 2 `distance`.
inline TokenMoves moves_of(const KeptTokens& own, Index steps, Index distance) {
  TokenMoves m{.steps = steps, .from = own.at, .kept = own.kept, .older = own.older};
  m.newer = own.newer;
  if (steps == 0) return m;
  if (m.end() - distance >= m.from) {
    m.cuts = true;
    m.dropped = m.end() - distance;
    m.newer = 0;
    return m;
  }
  if (m.newer > 0 && m.end() - m.newer >= distance) {
    m.advances = true;
    m.dropped = m.newer;
    m.newer = 0;
  }
  m.marks = m.newer == 0 && m.from > m.dropped;
  if (m.marks) m.newer = m.from - m.dropped;
  return m;
}

// Drops the first kept tokens and adds the new ones, columns of `more` from `first` on.
template <class Kept, class More>
void move_kept(const TokenMoves& m, Kept&& kept, const More& more, Index first) {
  for (Index i = m.dropped; i < m.kept; ++i) kept.col(i - m.dropped) = kept.col(i);
  for (Index i = std::max(m.kept, m.dropped); i < m.end(); ++i)
    kept.col(i - m.dropped) = more.col(first + i - m.kept);
}

// Throws unless a pass could have left these numbers.
inline void check_kept(const KeptTokens& own, Index position, Index roll_back, bool takes_symbols) {
  const Index distance = checkpoint_distance(roll_back);
  const Index newer = std::min(own.newer, distance);  // more is refused; no sum overflows
  const Index most = newer > 0 ? newer + distance - 1 : distance;
  const bool fits = 0 <= own.newer && own.newer <= distance && 0 <= own.kept && own.kept <= most &&
                    own.kept <= position && own.newer <= own.at && own.at <= 2 * distance &&
                    (own.at >= own.kept || own.at == own.newer) && 0 <= own.left &&
                    own.left <= std::min(roll_back, own.kept) && 0 <= own.taken &&
                    own.taken <= roll_back - own.left && (own.older == 0 || own.older == 1) &&
                    own.ids.size() == (takes_symbols ? most_kept(roll_back) : 0);
  if (!fits)
    fw::detail::throw_invalid(
        {"State: the numbers of the kept tokens are not those of a state that rolls back ",
         std::to_string(roll_back), " tokens"});
}

}  // namespace detail

}  // namespace fw::networks
