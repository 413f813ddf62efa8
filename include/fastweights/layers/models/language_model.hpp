#pragma once

#include <fastweights/core/errors.hpp>
#include <fastweights/layers/projections/embedding.hpp>
#include <fastweights/layers/projections/linear.hpp>
#include <vector>

namespace fw::inline FASTWEIGHTS_ABI {

/// A language model: embedding, a stack of blocks, a final norm, logits for the next token.
///
///     x₀ = embedding(ids)     x_l = block_l(x_{l−1})     logits = head(norm(x_L))
///
/// Shapes: ids T, logits symbols×T, or BT for B concatenated sequences. forward on one token of
/// each continues from the state, in constant memory if the states of the blocks have constant
/// size. Cost per token: that of the blocks, and 2 d·symbols flops for the logits. Throws
/// std::invalid_argument when a size does not fit or a symbol is out of range.
template <Layer Block, Layer Norm = typename Block::Norm> struct LanguageModel {
  using Scalar = typename Block::Scalar;
  using Matrix = Eigen::Matrix<Scalar, Dynamic, Dynamic>;
  static constexpr std::string_view name = "LanguageModel";

  Embedding<Scalar> embedding;  ///< symbol → x
  std::vector<Block> blocks;    ///< in the order of their execution
  Norm norm;
  Linear<Scalar> head;  ///< x → logits
  static constexpr auto names = fw::names("embedding", "blocks", "norm", "head");

  struct State {
    std::vector<typename Block::State> blocks;  ///< one per block
    typename Norm::State norm;
    static constexpr auto names = fw::names("blocks", "norm");
  };
  struct Trace {
    std::vector<Matrix> x;  ///< the input of every block, then the output of the last
    std::vector<typename Block::Trace> blocks;
    typename Norm::Trace norm;
    Matrix normed;
    Matrix dnormed, dx, dy;  ///< backward's buffers
    Index trained = 0;       ///< tokens of the last pass if it was a train pass, else 0
  };

  /// `layers` copies of a block; initialise() gives each its own random parameters.
  LanguageModel(Index symbols, Index layers, const Block& block)
      : embedding(symbols, block.inputs()),
        blocks(count_of(layers), block),
        norm(block.outputs()),
        head(block.outputs(), symbols) {}

  /// The number of symbols, which are 0 … symbols − 1.
  Index symbols() const { return embedding.symbols(); }
  /// The state of `sequences` concatenated sequences.
  State initial_state(Index sequences = 1) const {
    State state{{}, fw::initial_state(norm, sequences)};
    for (const Block& block : blocks) state.blocks.push_back(fw::initial_state(block, sequences));
    return state;
  }
  void check_state(const State& state) const {
    if (state.blocks.size() != blocks.size())
      detail::throw_mismatch(name, "the state", static_cast<Index>(state.blocks.size()), "blocks",
                             static_cast<Index>(blocks.size()), "the model");
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      fw::check_state(blocks[i], state.blocks[i]);
      if constexpr (CountsSequences<Block>)
        if (const Index given = blocks[i].sequences(state.blocks[i]),
            first = blocks[0].sequences(state.blocks[0]);
            given != first)
          detail::throw_mismatch(name, "block " + std::to_string(i) + " of the state", given,
                                 "sequences", first, "block 0");
    }
    fw::check_state(norm, state.norm);
  }

  void forward(State& state, Symbols ids, Output<Scalar> logits, Trace& trace,
               Pass pass = Pass::infer) const {
    const Index steps = static_cast<Index>(ids.size());
    check(ids, "logits", logits);
    check_state(state);
    trace.trained = 0;
    trace.x.resize(blocks.size() + 1);
    trace.blocks.resize(blocks.size());
    for (Matrix& buffer : trace.x) buffer.resize(embedding.outputs(), steps);
    trace.normed.resize(embedding.outputs(), steps);
    embedding.forward(ids, trace.x[0]);
    for (std::size_t i = 0; i < blocks.size(); ++i)
      blocks[i].forward(state.blocks[i], trace.x[i], trace.x[i + 1], trace.blocks[i], pass);
    norm.forward(state.norm, trace.x.back(), trace.normed, trace.norm, pass);
    Nothing none;
    head.forward(none, trace.normed, logits, none);
    if (pass.trains()) trace.trained = steps;
  }

  /// Gradients for the last train pass; grad accumulates. Calls ready(part) for every part of grad
  /// that is complete, from the head to the embedding.
  void backward(Symbols ids, Trace& trace, Input<Scalar> dlogits, LanguageModel& grad,
                const GradientReady& ready = {}) const {
    check(ids, "dlogits", dlogits);
    detail::check_trained(name, trace.trained, dlogits.cols());
    if (trace.trained != dlogits.cols())
      detail::throw_mismatch(name, "ids", dlogits.cols(), "tokens", trace.trained,
                             "the last train pass");
    detail::check_same_shapes(name, *this, "grad", grad);
    for (Matrix* buffer : {&trace.dnormed, &trace.dx, &trace.dy})
      buffer->resize(embedding.outputs(), dlogits.cols());
    Nothing none;
    const auto report = [&ready](auto& part) {
      if (ready) ready(detail::object(part));
    };
    head.backward(trace.normed, none, dlogits, trace.dnormed, grad.head);
    report(grad.head);
    norm.backward(trace.x.back(), trace.norm, trace.dnormed, trace.dx, grad.norm);
    report(grad.norm);
    for (std::size_t i = blocks.size(); i-- > 0;) {
      trace.dy.swap(trace.dx);
      blocks[i].backward(trace.x[i], trace.blocks[i], trace.dy, trace.dx, grad.blocks[i]);
      report(grad.blocks[i]);
    }
    embedding.backward(ids, trace.dx, grad.embedding);
    report(grad.embedding);
  }

 private:
  static std::size_t count_of(Index layers) {
    if (layers < 0)
      detail::throw_invalid(
          {name, ": layers is ", std::to_string(layers), ", expected at least 0"});
    return static_cast<std::size_t>(layers);
  }
  template <class View> void check(Symbols ids, std::string_view argument, const View& view) const {
    detail::check_not_empty(name, "ids", static_cast<Index>(ids.size()));
    detail::check_symbols(name, ids, symbols());
    detail::check_extent(name, argument, view, symbols(), static_cast<Index>(ids.size()));
  }
};

}  // namespace fw
