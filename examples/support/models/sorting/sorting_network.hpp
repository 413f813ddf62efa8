#pragma once

#include <fastweights/layers/models/pre_norm_block.hpp>
#include <fastweights/layers/norms/layer_norm.hpp>
#include <fastweights/layers/projections/embedding.hpp>
#include <fastweights/layers/projections/feed_forward.hpp>
#include <fastweights/layers/projections/linear.hpp>
#include <fastweights/training/losses.hpp>
#include <vector>

#include "models/any_layer.hpp"
#include "models/sorting/sorting_model.hpp"

/// A block around a mixer of any type.
template <class S>
using AnyBlock = fw::PreNormBlock<fw::LayerNorm<S>, AnyLayer<S>, fw::FeedForward<S>>;

/// Blocks over a sequence of symbols with answers at its end. Tokens have no positions; the
/// separator and the outputs so far do. Outputs have embeddings of their own.
template <class S> struct SortingNetwork {
  using Scalar = S;
  using Block = AnyBlock<S>;
  using Matrix = Eigen::Matrix<Scalar, fw::Dynamic, fw::Dynamic>;

  fw::Embedding<Scalar> embedding;  ///< symbols, separator, symbols as outputs
  fw::Embedding<Scalar> positions;
  std::vector<Block> blocks;
  fw::LayerNorm<Scalar> norm;
  fw::Linear<Scalar> head;
  static constexpr auto names = fw::names("embedding", "positions", "blocks", "norm", "head");

  using State = std::vector<typename Block::State>;
  struct Trace {
    std::vector<Matrix> x;
    std::vector<typename Block::Trace> blocks;
    typename fw::LayerNorm<Scalar>::Trace norm;
    Matrix normed, dnormed, dx, dy;
  };

  SortingNetwork(fw::Index layers, const Block& block)
      : embedding(sort_vocabulary + long{sort_symbols}, block.inputs()),
        positions(sort_symbols, block.inputs()),
        blocks(static_cast<std::size_t>(layers), block),
        norm(block.inputs()),
        head(block.inputs(), sort_symbols) {}

  template <class Generator> void initialise(Generator& random) {
    random.fill(embedding.weight, 1.0);
    random.fill(positions.weight, 1.0);
    for (Block& block : blocks) fw::initialise(block, random);
    head.initialise(random);
  }

  State initial_state() const {
    State state;
    for (const Block& block : blocks) state.push_back(block.initial_state());
    return state;
  }

  /// Reads tokens without answers.
  void read(State& state, fw::Symbols ids, Trace& trace) const {
    embed(ids, trace);
    run(state, trace, fw::Pass::infer);
  }

  /// Reads the rest, and answers at its last 20 symbols: logits 20×20.
  void answer(State& state, fw::Symbols ids, Matrix& logits, Trace& trace, fw::Pass pass) const {
    embed(ids, trace);
    auto& x = trace.x[0];
    for (fw::Index i = 0; i < outputs; ++i)
      x.col(x.cols() - outputs + i) += positions.weight.row(i).transpose();
    run(state, trace, pass);
    trace.normed.resize(x.rows(), x.cols());
    auto none = norm.initial_state();
    norm.forward(none, trace.x.back(), trace.normed, trace.norm, pass);
    logits.resize(outputs, outputs);
    head.forward(none, trace.normed.rightCols(outputs), logits, none);
  }

  /// Gradients of the last answer(); the state before it counts as constant. grad accumulates.
  void backward(fw::Symbols ids, const Matrix& dlogits, Trace& trace, SortingNetwork& grad) const {
    const auto& x = trace.x.back();
    trace.dnormed.setZero(x.rows(), x.cols());
    trace.dx.resize(x.rows(), x.cols());
    trace.dy.resize(x.rows(), x.cols());
    fw::Nothing none;
    head.backward(trace.normed.rightCols(outputs), none, dlogits, trace.dnormed.rightCols(outputs),
                  grad.head);
    norm.backward(x, trace.norm, trace.dnormed, trace.dx, grad.norm);
    for (std::size_t i = blocks.size(); i-- > 0;) {
      trace.dy.swap(trace.dx);
      blocks[i].backward(trace.x[i], trace.blocks[i], trace.dy, trace.dx, grad.blocks[i]);
    }
    embedding.backward(ids, trace.dx, grad.embedding);
    for (fw::Index i = 0; i < outputs; ++i)
      grad.positions.weight.row(i) += trace.dx.col(x.cols() - outputs + i).transpose();
  }

 private:
  static constexpr auto outputs = fw::Index{sort_symbols};

  void embed(fw::Symbols ids, Trace& trace) const {
    trace.x.resize(blocks.size() + 1);
    trace.blocks.resize(blocks.size());
    for (Matrix& x : trace.x) x.resize(embedding.outputs(), static_cast<fw::Index>(ids.size()));
    embedding.forward(ids, trace.x[0]);
  }
  void run(State& state, Trace& trace, fw::Pass pass) const {
    for (std::size_t i = 0; i < blocks.size(); ++i)
      blocks[i].forward(state[i], trace.x[i], trace.x[i + 1], trace.blocks[i], pass);
  }
};

/// A SortingNetwork as its trainer sees it.
template <class S>
class TrainedSorting final
    : public RecordModel<TrainedSorting<S>, SortingModel, SortingNetwork<S>> {
 public:
  using Network = SortingNetwork<S>;
  using Base = RecordModel<TrainedSorting, SortingModel, Network>;
  using Base::Base, Base::network, Base::reading;

  Score run(std::span<const TaskSequence> sequences, long batch, std::any& buffers,
            TrainedModel* gradient = nullptr) const override {
    if (!buffers.has_value()) buffers.emplace<Buffers>();
    auto& b = std::any_cast<Buffers&>(buffers);
    Score score;
    for (const TaskSequence& each : sequences) score += run(each, batch, b, gradient);
    return score;
  }

 private:
  struct Buffers {
    typename Network::Trace before, answering;
    typename Network::Matrix logits;
  };
  static constexpr std::size_t segment = 512;

  Score run(const TaskSequence& sequence, long batch, Buffers& b, TrainedModel* gradient) const {
    const fw::Symbols all =
        reading.reach > 0 ? last(sequence.input, reading.reach) : fw::Symbols(sequence.input);
    const fw::Symbols tail = last(all, reading.tail);
    const fw::Symbols head = all.first(all.size() - tail.size());
    auto state = network.initial_state();
    for (std::size_t i = 0; i < head.size(); i += segment)
      network.read(state, head.subspan(i, std::min(segment, head.size() - i)), b.before);
    network.answer(state, tail, b.logits, b.answering,
                   gradient ? fw::Pass::train : fw::Pass::infer);
    const fw::Symbols targets = fw::Symbols(sequence.targets).last(sort_symbols);
    Score score{.examples = 1, .answers = long{sort_symbols}};
    score.right = count_right(b.logits, targets);
    score.loss = static_cast<double>(fw::cross_entropy(
        b.logits, targets, b.logits, {.divisor = static_cast<double>(batch) * sort_symbols}));
    if (gradient)
      network.backward(tail, b.logits, b.answering,
                       static_cast<TrainedSorting&>(*gradient).network);
    return score;
  }

  // The last tokens before the separator, and everything after them.
  static fw::Symbols last(fw::Symbols ids, long tokens) {
    return ids.last(std::min(static_cast<std::size_t>(tokens) + sort_symbols, ids.size()));
  }
};
