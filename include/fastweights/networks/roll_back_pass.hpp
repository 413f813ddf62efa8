#pragma once

#include <fastweights/networks/replay.hpp>

/// \file
/// Steps of a pass before and after its operations, for a state that rolls back: see roll_back.hpp.

namespace fw::inline FASTWEIGHTS_ABI::networks::detail {

// Makes room for the last tokens in a state before the first token.
template <class S>
void keep_tokens(State& state, const StateOptions& options, const Plan<S>& plan,
                 bool takes_symbols) {
  state.roll_back_limit = options.roll_back;
  state.kept.resize(std::size_t(options.sequences));
  if (takes_symbols)
    for (KeptTokens& each : state.kept) each.ids.setZero(most_kept(options.roll_back));
  std::size_t part = 0;
  for (const Node<S>& node : plan.nodes)
    if (node.has_state) {
      State::Member& own = state.members[part++];
      own.kept = kept_part(node, *own.part, options, plan.is_constant);
    }
}

// Throws unless a pass could have left the numbers of all sequences.
inline void check_kept(const State& state, std::string_view owner, bool takes_symbols) {
  if (Index(state.kept.size()) != state.sequences())
    fw::detail::throw_mismatch(owner, "the state", Index(state.kept.size()),
                               "sequences of kept tokens", state.sequences(), "positions");
  for (Index b = 0; b < state.sequences(); ++b)
    check_kept(state.kept[std::size_t(b)], state.positions[b], state.roll_back_limit,
               takes_symbols);
}

// The same for what the state keeps of one operation.
template <class S>
void check_kept_inputs(const Node<S>& node, const State::Member& member, const State& state,
                       const std::vector<bool>& is_constant) {
  const bool keeps = node.operation->takes_back() < state.roll_back_limit;
  if (keeps != (member.kept != nullptr))
    fw::detail::throw_invalid({node.path, ": the state is that of another network"});
  if (!keeps) return;
  fw::detail::check_extent(node.path, "inputs in the state", kept_inputs<S>(*member.kept),
                           KeptOperation<S>::rows(node, is_constant),
                           state.sequences() * most_kept(state.roll_back_limit));
}

// An operation leaves the tokens of sequence b that were rolled back, or returns to a checkpoint
// before them.
template <class S>
void take_back(const State& state, Index b, State::Member& member, const Forward<S>& run) {
  const KeptTokens& own = state.kept[std::size_t(b)];
  if (!member.kept)
    run.node.operation->take_back(run, b, own.taken);
  else if (own.is_ahead())
    member.part->assign(b, state.sequences(),
                        *member.kept->checkpoints[std::size_t(own.last_checkpoint())]);
}

// Plans what the pass does with the kept tokens of every sequence.
template <class S> void plan_moves(const State& state, const Streams& streams, Replay<S>& replay) {
  replay.moves.clear();
  replay.is_plain = true;
  for (Index b = 0; b < state.sequences(); ++b) {
    replay.moves.push_back(moves_of(state.kept[std::size_t(b)], streams.steps(b),
                                    checkpoint_distance(state.roll_back_limit)));
    replay.is_plain = replay.is_plain && replay.moves.back().is_plain();
  }
}

// After the operations: moves the kept tokens as planned, with the ids of the pass.
template <class S>
void advance_kept(State& state, const std::vector<int>& ids, const Streams& streams,
                  const Replay<S>& replay) {
  const Eigen::Map<const Eigen::Matrix<int, 1, Dynamic>> row(ids.data(), Index(ids.size()));
  for (Index b = 0; b < state.sequences(); ++b) {
    const TokenMoves& m = replay.moves[std::size_t(b)];
    KeptTokens& own = state.kept[std::size_t(b)];
    if (m.steps == 0) continue;
    if (own.ids.size() > 0) move_kept(m, own.ids, row, streams.first(b));
    own.advance(m.dropped, m.steps, state.roll_back_limit);
    own.newer = m.newer;
    if (m.advances) own.older = 1 - own.older;
  }
}

}  // namespace fw::networks::detail
