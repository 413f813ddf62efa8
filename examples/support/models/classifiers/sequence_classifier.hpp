#pragma once

#include <algorithm>
#include <fastweights/networks/network.hpp>
#include <fastweights/training/losses.hpp>
#include <numeric>
#include <vector>

#include "training/experiments/classifier_model.hpp"

/// The networks of a model: vectors of tokens, what is known after each, classes after the last.
template <class S> struct ClassifierNetworks {
  fw::networks::Network<S> encoder, recurrent, head;
  static constexpr auto names = fw::names("encoder", "recurrent", "head");
};

/// The model of Ba et al. 2016, arXiv 1610.06258, section 4: an encoder makes vectors of the
/// tokens, a recurrent layer reads them, and a head chooses a class after the last one of every
/// sequence. A vector of a symbol depends on the symbol alone, so that it is computed once a
/// symbol, not once a token.
template <class S>
class SequenceClassifier final
    : public RecordModel<SequenceClassifier<S>, ClassifierModel, ClassifierNetworks<S>> {
 public:
  using Networks = ClassifierNetworks<S>;
  using Base = RecordModel<SequenceClassifier, ClassifierModel, Networks>;
  using Base::Base, Base::network;

  /// The sequences are equally long, one behind the other.
  Score run(const SequenceBatch& batch, std::span<const int> targets, std::any& buffers,
            TrainedModel* gradient = nullptr) const override {
    if (!buffers.has_value()) buffers = std::make_shared<Buffers>();  // any copies what it holds
    auto& b = *std::any_cast<std::shared_ptr<Buffers>&>(buffers);
    b.pass = gradient ? fw::Pass::train : fw::Pass::infer;
    encode(batch, b);
    read(static_cast<fw::Index>(targets.size()), b);
    apply(network.head, b.last, b.logits, b.head, b.pass);
    const auto answers = static_cast<long>(targets.size());
    Score score{.examples = answers, .answers = answers};
    score.right = count_right(b.logits, targets);
    score.loss = static_cast<double>(fw::cross_entropy(b.logits, targets, b.logits));
    if (gradient) backward(batch, b, static_cast<SequenceClassifier&>(*gradient).network);
    return score;
  }

 private:
  using Matrix = Eigen::MatrixX<S>;
  using Network = fw::networks::Network<S>;
  using Trace = typename Network::Trace;
  struct Buffers {
    fw::Pass pass = fw::Pass::infer;
    Trace encoder, head;
    std::vector<Trace> recurrent;  // one a group of sequences
    std::vector<int> symbols;      // all that there are
    Matrix table, x, y, last;      // of the symbols, of the tokens; of a group; of the sequences
    Matrix dtable, dx, dy, dlast;  // their gradients
    Matrix logits;                 // then their gradient
  };
  // Enough sequences for large products, few enough for their states to stay in the cache.
  static constexpr fw::Index group = 32;

  // Every column of x by itself.
  static void apply(const Network& to, const Matrix& x, Matrix& y, Trace& trace, fw::Pass pass) {
    auto state = to.initial_state();
    y.resize(to.outputs(), x.cols());
    to.forward(state, x, y, trace, pass);
  }

  bool takes_symbols() const { return network.encoder.graph->takes_symbols; }

  void encode(const SequenceBatch& batch, Buffers& b) const {
    const Network& encoder = network.encoder;
    if (!takes_symbols())
      return apply(encoder, batch.vectors.template cast<S>(), b.x, b.encoder, b.pass);
    b.symbols.resize(static_cast<std::size_t>(encoder.graph->symbols));
    std::iota(b.symbols.begin(), b.symbols.end(), 0);
    b.table.resize(encoder.outputs(), encoder.graph->symbols);
    auto state = encoder.initial_state();
    encoder.forward(state, b.symbols, b.table, b.encoder, b.pass);
    b.x.resize(encoder.outputs(), std::ssize(batch.symbols));
    for (fw::Index t = 0; t < b.x.cols(); ++t)
      b.x.col(t) = b.table.col(batch.symbols[static_cast<std::size_t>(t)]);
  }
  void encode_backward(const SequenceBatch& batch, Buffers& b, Networks& grad) const {
    if (!takes_symbols()) return network.encoder.backward(b.encoder, b.dx, grad.encoder);
    b.dtable.setZero(b.table.rows(), b.table.cols());
    for (fw::Index t = 0; t < b.dx.cols(); ++t)
      b.dtable.col(batch.symbols[static_cast<std::size_t>(t)]) += b.dx.col(t);
    network.encoder.backward(b.encoder, b.dtable, grad.encoder);
  }

  // Calls f(trace of the group, its tokens, its sequences, its last tokens) for every group, the
  // last tokens counted from the first one of the group.
  template <class F> static void by_groups(fw::Index count, Buffers& b, const F& f) {
    const fw::Index length = b.x.cols() / count;
    const auto groups = static_cast<std::size_t>((count + group - 1) / group);
    if (b.recurrent.size() < groups) b.recurrent.resize(groups);
    for (fw::Index first = 0; first < count; first += group) {
      const fw::Index n = std::min(group, count - first);
      f(b.recurrent[static_cast<std::size_t>(first / group)],
        Eigen::seqN(first * length, n * length), Eigen::seqN(first, n),
        Eigen::seqN(length - 1, n, length));
    }
  }

  void read(fw::Index count, Buffers& b) const {
    const Network& layer = network.recurrent;
    b.last.resize(layer.outputs(), count);
    by_groups(count, b, [&](Trace& trace, auto tokens, auto sequences, auto ends) {
      auto state = layer.initial_state(sequences.size());
      b.y.resize(layer.outputs(), tokens.size());
      layer.forward(state, b.x(Eigen::all, tokens), b.y, trace, b.pass);
      b.last(Eigen::all, sequences) = b.y(Eigen::all, ends);
    });
  }

  // Gradients of the last train pass, after that of the logits.
  void backward(const SequenceBatch& batch, Buffers& b, Networks& grad) const {
    b.dlast.resize(b.last.rows(), b.last.cols());
    network.head.backward(b.last, b.head, b.logits, b.dlast, grad.head);
    b.dx.resize(b.x.rows(), b.x.cols());
    by_groups(b.last.cols(), b, [&](Trace& trace, auto tokens, auto sequences, auto ends) {
      b.dy.setZero(b.last.rows(), tokens.size());
      b.dy(Eigen::all, ends) = b.dlast(Eigen::all, sequences);
      network.recurrent.backward(b.x(Eigen::all, tokens), trace, b.dy, b.dx(Eigen::all, tokens),
                                 grad.recurrent);
    });
    encode_backward(batch, b, grad);
  }
};
