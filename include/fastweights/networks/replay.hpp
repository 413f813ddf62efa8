#pragma once

#include <fastweights/networks/plan.hpp>

/// \file
/// Runs an operation of a state that rolls back: see roll_back.hpp.

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// The inputs of the kept tokens of every sequence, those of the operation one below the other.
template <class S> struct KeptInputs {
  Matrix<S> inputs;  ///< rows×(B·most)
  static constexpr auto names = fw::names("inputs");
};

/// The part of a trace that shows an operation earlier tokens again.
template <class S> struct Replay {
  std::vector<detail::TokenMoves> moves;  ///< of every sequence in this pass
  std::vector<Node<S>> nodes;             ///< with places in `values`; one for each state
  std::vector<Matrix<S>> values;          ///< the inputs of an operation, then its output
  std::vector<int> ids;                   ///< of their tokens
  Streams streams;                        ///< the places of their tokens
  bool is_plain = true;                   ///< whether operations see the new tokens alone
};

namespace detail {

// The kept inputs of an operation. Throws std::invalid_argument for those of another scalar.
template <class S> Matrix<S>& kept_inputs(const KeptPart& kept) {
  const auto own = kept.inputs->object();
  if (own.type != &fw::detail::object_type<KeptInputs<S>>)
    fw::detail::throw_invalid({kept.path, ": the state is that of another network"});
  return static_cast<KeptInputs<S>*>(own.address)->inputs;
}

// One operation in one pass, whose state keeps tokens.
template <class S> class KeptOperation {
 public:
  KeptOperation(const Forward<S>& run, State& state, std::size_t member, const Plan<S>& plan,
                Replay<S>& replay)
      : run_(run),
        state_(state),
        own_(state.members[member]),
        inputs_(kept_inputs<S>(*own_.kept)),
        is_constant_(plan.is_constant),
        node_(replay.nodes[member]),
        replay_(replay) {}

  // Rows that are kept of the inputs of a node.
  static Index rows(const Node<S>& node, const std::vector<bool>& is_constant) {
    Index sum = 0;
    for (const Slice& in : node.in) sum += is_constant[in.buffer] ? 0 : in.rows;
    return sum;
  }

  // The tokens of this pass, after those that the state has not seen since a roll back.
  void forward() {
    if (replay_.is_plain) {
      set_checkpoints();
      keep_inputs();
      return run_.node.operation->forward(run_);
    }
    run_stretch(0);
    set_checkpoints();
    run_stretch(1);
    keep_inputs();
  }

 private:
  template <class F> void for_each_stream(const F& f) const {
    for (Index b = 0; b < run_.sequences(); ++b)
      if (const TokenMoves& m = replay_.moves[std::size_t(b)]; m.steps > 0) f(b, m);
  }
  auto kept_of(Index b) const { return columns_of(inputs_, b, run_.sequences()); }
  // Calls f(input, first row of it in `inputs_`) for every input that is not constant.
  template <class F> void for_each_input(const F& f) const {
    Index row = 0;
    for (std::size_t i = 0; i < run_.node.in.size(); ++i)
      if (!is_constant_[run_.node.in[i].buffer]) f(i, row), row += run_.node.in[i].rows;
  }

  void set_checkpoints() {
    auto& checkpoints = own_.kept->checkpoints;
    for_each_stream([&](Index b, const TokenMoves& m) {
      const std::size_t older = std::size_t(m.older), newer = m.advances ? older : 1 - older;
      if (m.cuts) checkpoints[older]->assign(b, run_.sequences(), *own_.part);
      if (m.marks) checkpoints[newer]->assign(b, run_.sequences(), *own_.part);
    });
  }
  void keep_inputs() {
    for_each_stream([&](Index b, const TokenMoves& m) {
      for_each_input([&](std::size_t i, Index row) {
        const auto x = run_.in(i);
        move_kept(m, kept_of(b).middleRows(row, x.rows()), x, run_.streams.first(b));
      });
    });
  }

  void run_stretch(int stretch) {
    replay_.streams.clear();
    Index tokens = 0;
    for (Index b = 0; b < run_.sequences(); ++b) {
      const TokenMoves& m = replay_.moves[std::size_t(b)];
      const Index count = m.steps > 0 ? m.end(stretch) - m.begin(stretch) : 0;
      replay_.streams.add(run_.streams.position(b) - m.kept + m.begin(stretch), count);
      tokens += count;
    }
    if (tokens == 0) return;
    gather(stretch, tokens);
    node_.operation->forward({node_, run_.weights, replay_.values, run_.state, run_.trace,
                              replay_.ids, replay_.streams, false});
    give_outputs(stretch);
  }
  // Copies the inputs of the stretch, kept ones and new ones.
  void gather(int stretch, Index tokens) {
    const std::size_t count = run_.node.in.size();
    replay_.values.resize(std::max(replay_.values.size(), count + 1));
    for (std::size_t i = 0; i < count; ++i) {
      const auto x = run_.in(i);
      replay_.values[i].resize(x.rows(), is_constant_[run_.node.in[i].buffer] ? 1 : tokens);
      if (is_constant_[run_.node.in[i].buffer]) replay_.values[i] = x;
    }
    replay_.values[count].resize(run_.node.out.rows, tokens);
    replay_.ids.resize(run_.ids.empty() ? 0 : std::size_t(tokens));
    for_each_stream([&](Index b, const TokenMoves& m) {
      for (Index t = m.begin(stretch), to = replay_.streams.first(b); t < m.end(stretch); ++t, ++to)
        gather_token(b, m, t, to);
    });
  }
  void gather_token(Index b, const TokenMoves& m, Index t, Index to) {
    const Index column = run_.streams.first(b) + t - m.kept;
    for_each_input([&](std::size_t i, Index row) {
      const auto x = run_.in(i);
      if (t < m.kept)
        replay_.values[i].col(to) = kept_of(b).col(t).segment(row, x.rows());
      else
        replay_.values[i].col(to) = x.col(column);
    });
    if (!replay_.ids.empty())
      replay_.ids[std::size_t(to)] = t < m.kept ? state_.kept[std::size_t(b)].ids[t]
                                                : run_.ids.begin()[std::ptrdiff_t(column)];
  }
  void give_outputs(int stretch) {
    const auto y = Forward<S>::template view<const S>(replay_.values, node_.out);
    auto out = run_.out();
    for_each_stream([&](Index b, const TokenMoves& m) {
      const Index begin = std::max(m.begin(stretch), m.kept), count = m.end(stretch) - begin;
      if (count <= 0) return;
      out.middleCols(run_.streams.first(b) + begin - m.kept, count) =
          y.middleCols(replay_.streams.first(b) + begin - m.begin(stretch), count);
    });
  }

  const Forward<S>& run_;
  State& state_;
  State::Member& own_;
  Matrix<S>& inputs_;
  const std::vector<bool>& is_constant_;
  const Node<S>& node_;
  Replay<S>& replay_;
};

// A node whose inputs and output are matrices of their own, one after the other.
template <class S> Node<S> node_apart(Node<S> node) {
  for (std::size_t i = 0; i < node.in.size(); ++i) node.in[i] = {i, 0, node.in[i].rows};
  node.out = {node.in.size(), 0, node.out.rows};
  return node;
}

// The kept part of an operation, from its state before the first token. Throws
// std::invalid_argument if the state cannot be copied sequence by sequence, or the operation cannot
// read tokens again.
template <class S>
std::unique_ptr<KeptPart> kept_part(const Node<S>& node, const StatePart& initial,
                                    const StateOptions& options,
                                    const std::vector<bool>& is_constant) {
  if (node.operation->takes_back() >= options.roll_back) return nullptr;
  if (node.operation->needs_whole_sequences())
    fw::detail::throw_invalid(
        {node.path, ": the state cannot roll back; the operation needs whole sequences"});
  if (!initial.assigns())
    fw::detail::throw_invalid({node.path,
                               ": the state cannot roll back; its record has remove(), "
                               "expected assign(b, sequences, other) beside it"});
  auto kept = std::make_unique<KeptPart>();
  kept->path = node.path + ".roll_back";
  for (auto& checkpoint : kept->checkpoints) checkpoint = initial.copy();
  const Index rows = KeptOperation<S>::rows(node, is_constant);
  kept->inputs = std::make_unique<StateOfPart<KeptInputs<S>>>(
      KeptInputs<S>{Matrix<S>::Zero(rows, options.sequences * most_kept(options.roll_back))});
  return kept;
}

}  // namespace detail

}  // namespace fw::networks
