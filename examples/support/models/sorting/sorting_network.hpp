#pragma once

#include <fastweights/networks/network.hpp>
#include <fastweights/training/losses.hpp>

#include "models/sorting/sorting_model.hpp"

/// The networks of a model over a sequence of symbols with answers at its end: vectors of symbols,
/// vectors of the places of answers, and the blocks that read both. Tokens have no positions; the
/// separator and the outputs so far do. Outputs have embeddings of their own.
template <class S> struct SortingNetworks {
  using Network = fw::networks::Network<S>;
  Network embedding;  ///< symbols, separator, symbols as outputs
  Network positions, blocks;
  static constexpr auto names = fw::names("embedding", "positions", "blocks");
};

/// SortingNetworks as their trainer sees them.
template <class S>
class TrainedSorting final
    : public RecordModel<TrainedSorting<S>, SortingModel, SortingNetworks<S>> {
 public:
  using Networks = SortingNetworks<S>;
  using Network = typename Networks::Network;
  using Matrix = Eigen::MatrixX<S>;
  using Base = RecordModel<TrainedSorting, SortingModel, Networks>;
  using Base::Base, Base::network, Base::reading;

  /// Buffers of a pass over some tokens.
  struct Buffers {
    typename Network::Trace embedding, positions, blocks;
    Matrix x, places, logits, dlogits, dx, dplaces;
  };

  Score run(std::span<const TaskSequence> sequences, long batch, std::any& buffers,
            TrainedModel* gradient = nullptr) const override {
    if (!buffers.has_value()) buffers = std::make_shared<std::array<Buffers, 2>>();
    auto& [before, answering] = *std::any_cast<std::shared_ptr<std::array<Buffers, 2>>&>(buffers);
    Score score;
    for (const TaskSequence& each : sequences)
      score += run(each, batch, before, answering, gradient);
    return score;
  }

  /// Reads tokens, the last of which are answers if it `answers`. The logits are those of all
  /// tokens.
  void read(fw::networks::State& state, fw::Symbols ids, bool answers, Buffers& b,
            fw::Pass pass) const {
    embed(network.embedding, ids, b.x, b.embedding, pass);
    if (answers) {
      embed(network.positions, places(), b.places, b.positions, pass);
      b.x.rightCols(outputs) += b.places;
    }
    b.logits.resize(network.blocks.outputs(), b.x.cols());
    network.blocks.forward(state, b.x, b.logits, b.blocks, pass);
  }

 private:
  static constexpr std::size_t segment = 512;
  static constexpr auto outputs = fw::Index{sort_symbols};

  static std::vector<int> places() {
    std::vector<int> all;
    for (int i = 0; i < int{outputs}; ++i) all.push_back(i);
    return all;
  }
  static void embed(const Network& table, fw::Symbols ids, Matrix& x,
                    typename Network::Trace& trace, fw::Pass pass) {
    auto none = table.initial_state();
    x.resize(table.outputs(), static_cast<fw::Index>(ids.size()));
    table.forward(none, ids, x, trace, pass);
  }

  Score run(const TaskSequence& sequence, long batch, Buffers& before, Buffers& b,
            TrainedModel* gradient) const {
    const fw::Symbols all =
        reading.reach > 0 ? last(sequence.input, reading.reach) : fw::Symbols(sequence.input);
    const fw::Symbols tail = last(all, reading.tail);
    const fw::Symbols head = all.first(all.size() - tail.size());
    auto state = network.blocks.initial_state();
    for (std::size_t i = 0; i < head.size(); i += segment)
      read(state, head.subspan(i, std::min(segment, head.size() - i)), false, before,
           fw::Pass::infer);
    read(state, tail, true, b, gradient ? fw::Pass::train : fw::Pass::infer);
    const fw::Symbols targets = fw::Symbols(sequence.targets).last(sort_symbols);
    Score score{.examples = 1, .answers = long{sort_symbols}};
    b.dlogits = b.logits.rightCols(outputs);
    score.right = count_right(b.dlogits, targets);
    score.loss = static_cast<double>(fw::cross_entropy(
        b.dlogits, targets, b.dlogits, {.divisor = static_cast<double>(batch) * sort_symbols}));
    if (gradient) backward(b, static_cast<TrainedSorting&>(*gradient).network);
    return score;
  }

  // The gradients of the last answers; the state before them counts as constant.
  void backward(Buffers& b, Networks& grad) const {
    b.logits.setZero();
    b.logits.rightCols(outputs) = b.dlogits;
    b.dx.resize(b.x.rows(), b.x.cols());
    network.blocks.backward(b.x, b.blocks, b.logits, b.dx, grad.blocks);
    network.embedding.backward(b.embedding, b.dx, grad.embedding);
    b.dplaces = b.dx.rightCols(outputs);
    network.positions.backward(b.positions, b.dplaces, grad.positions);
  }

  // The last tokens before the separator, and everything after them.
  static fw::Symbols last(fw::Symbols ids, long tokens) {
    return ids.last(std::min(static_cast<std::size_t>(tokens) + sort_symbols, ids.size()));
  }
};
