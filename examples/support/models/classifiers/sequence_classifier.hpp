#pragma once

#include <algorithm>
#include <fastweights/layers/projections/embedding.hpp>
#include <fastweights/layers/projections/linear.hpp>
#include <fastweights/training/losses.hpp>
#include <span>
#include <vector>

#include "models/any_layer.hpp"
#include "training/experiments/classifier_model.hpp"

/// \file
/// The network of Ba et al. 2016, arXiv 1610.06258, section 4: tokens become vectors of 100, a
/// recurrent layer reads them, and 100 ReLU after its last token choose a class. Everything but the
/// recurrent layer takes the tokens of a whole batch in one product.

/// ReLU of every entry, in place, and its gradient from the result.
template <class S> void rectify(Eigen::MatrixX<S>& x) { x = x.cwiseMax(S(0)); }
template <class S> void rectify_backward(const Eigen::MatrixX<S>& y, Eigen::MatrixX<S>& dy) {
  dy.array() *= (y.array() > 0).template cast<S>();
}

/// Encodes symbols by an embedding and a layer of ReLU. A vector depends on its symbol alone, so
/// that it is computed once a symbol, not once a token.
template <class S = float> struct SymbolEncoder {
  using Scalar = S;
  using Matrix = Eigen::MatrixX<S>;
  struct Trace {
    Matrix embedded, table, dtable, dembedded;  ///< one column a symbol
  };

  fw::Embedding<S> embedding;
  fw::Linear<S> linear;
  static constexpr auto names = fw::names("embedding", "linear");

  SymbolEncoder(fw::Index symbols, fw::Index embedded, fw::Index outputs)
      : embedding(symbols, embedded), linear(embedded, outputs) {}

  fw::Index outputs() const { return linear.outputs(); }
  template <class Generator> void initialise(Generator& random) {
    random.fill(embedding.weight, 1.0);
    linear.initialise(random);
  }

  void forward(const SequenceBatch& batch, Matrix& x, Trace& trace) const {
    fw::Nothing none;
    trace.embedded = embedding.weight.transpose();
    trace.table.resize(outputs(), embedding.symbols());
    linear.forward(none, trace.embedded, trace.table, none);
    rectify(trace.table);
    x.resize(outputs(), static_cast<fw::Index>(batch.symbols.size()));
    for (fw::Index t = 0; t < x.cols(); ++t)
      x.col(t) = trace.table.col(batch.symbols[static_cast<std::size_t>(t)]);
  }

  void backward(const SequenceBatch& batch, Trace& trace, const Matrix& dx,
                SymbolEncoder& grad) const {
    fw::Nothing none;
    trace.dtable.setZero(outputs(), embedding.symbols());
    for (fw::Index t = 0; t < dx.cols(); ++t)
      trace.dtable.col(batch.symbols[static_cast<std::size_t>(t)]) += dx.col(t);
    rectify_backward(trace.table, trace.dtable);
    trace.dembedded.resize(trace.embedded.rows(), trace.embedded.cols());
    linear.backward(trace.embedded, none, trace.dtable, trace.dembedded, grad.linear);
    grad.embedding.weight += trace.dembedded.transpose();
  }
};

/// Encodes vectors, one a column, by a layer of ReLU.
struct VectorEncoder {
  using Scalar = float;
  using Matrix = Eigen::MatrixXf;
  struct Trace {
    Matrix rectified, dlinear, dbatch;
  };

  fw::Linear<float> linear;
  static constexpr auto names = fw::names("linear");

  VectorEncoder(fw::Index inputs, fw::Index outputs) : linear(inputs, outputs) {}

  fw::Index outputs() const { return linear.outputs(); }

  void forward(const SequenceBatch& batch, Matrix& x, Trace& trace) const {
    fw::Nothing none;
    x.resize(outputs(), batch.vectors.cols());
    linear.forward(none, batch.vectors, x, none);
    rectify(x);
    trace.rectified = x;
  }

  void backward(const SequenceBatch& batch, Trace& trace, const Matrix& dx,
                VectorEncoder& grad) const {
    fw::Nothing none;
    trace.dlinear = dx;
    rectify_backward(trace.rectified, trace.dlinear);
    trace.dbatch.resize(batch.vectors.rows(), batch.vectors.cols());
    linear.backward(batch.vectors, none, trace.dlinear, trace.dbatch, grad.linear);
  }
};

/// Encoder, recurrent layer, 100 ReLU, logits of the classes.
template <class Encoder> struct SequenceClassifier {
  using Scalar = typename Encoder::Scalar;
  using Matrix = typename Encoder::Matrix;
  using Recurrent = AnyLayer<Scalar>;

  Encoder encoder;
  Recurrent recurrent;
  fw::Linear<Scalar> hidden;
  fw::Linear<Scalar> output;
  static constexpr auto names = fw::names("encoder", "recurrent", "hidden", "output");

  struct Trace {
    typename Encoder::Trace encoder;
    std::vector<typename Recurrent::Trace> recurrent;  ///< one a group of sequences
    Matrix x, y, last, rectified;  ///< y of a group; last: the last column of every sequence
    Matrix dx, dy, dlast, drectified;
  };

  SequenceClassifier(Encoder e, Recurrent r, fw::Index units, fw::Index classes)
      : encoder(std::move(e)),
        recurrent(std::move(r)),
        hidden(recurrent.outputs(), units),
        output(units, classes) {}

  /// Logits classes×count of a batch of `count` sequences, equally long, one behind the other.
  void forward(const SequenceBatch& batch, fw::Index count, Matrix& logits, Trace& trace,
               fw::Pass pass) const {
    encoder.forward(batch, trace.x, trace.encoder);
    read(count, trace, pass);
    fw::Nothing none;
    trace.rectified.resize(hidden.outputs(), count);
    hidden.forward(none, trace.last, trace.rectified, none);
    rectify(trace.rectified);
    logits.resize(output.outputs(), count);
    output.forward(none, trace.rectified, logits, none);
  }

  /// Gradients of the last train pass; grad accumulates.
  void backward(const SequenceBatch& batch, const Matrix& dlogits, Trace& trace,
                SequenceClassifier& grad) const {
    fw::Nothing none;
    trace.drectified.resize(hidden.outputs(), dlogits.cols());
    output.backward(trace.rectified, none, dlogits, trace.drectified, grad.output);
    rectify_backward(trace.rectified, trace.drectified);
    trace.dlast.resize(hidden.inputs(), dlogits.cols());
    hidden.backward(trace.last, none, trace.drectified, trace.dlast, grad.hidden);
    read_backward(dlogits.cols(), trace, grad);
    encoder.backward(batch, trace.encoder, trace.dx, grad.encoder);
  }

 private:
  // How many sequences the recurrent layer reads at a time: enough for large products, few enough
  // for their states to stay in the cache.
  fw::Index group() const { return recurrent.reads_several() ? 32 : 1; }

  // Calls f(number of the group, its first sequence, how many it has).
  template <class F> void by_groups(fw::Index count, const F& f) const {
    for (fw::Index first = 0; first < count; first += group())
      f(static_cast<std::size_t>(first / group()), first, std::min(group(), count - first));
  }

  void read(fw::Index count, Trace& trace, fw::Pass pass) const {
    const fw::Index length = trace.x.cols() / count;
    const auto groups = static_cast<std::size_t>((count + group() - 1) / group());
    if (trace.recurrent.size() < groups) trace.recurrent.resize(groups);
    trace.last.resize(recurrent.outputs(), count);
    by_groups(count, [&](std::size_t g, fw::Index first, fw::Index n) {
      auto state = recurrent.initial_state(n);
      trace.y.resize(recurrent.outputs(), n * length);
      recurrent.forward(state, trace.x.middleCols(first * length, n * length), trace.y,
                        trace.recurrent[g], pass);
      for (fw::Index i = 0; i < n; ++i)
        trace.last.col(first + i) = trace.y.col((i + 1) * length - 1);
    });
  }

  void read_backward(fw::Index count, Trace& trace, SequenceClassifier& grad) const {
    const fw::Index length = trace.x.cols() / count;
    trace.dx.resize(trace.x.rows(), trace.x.cols());
    by_groups(count, [&](std::size_t g, fw::Index first, fw::Index n) {
      trace.dy.setZero(recurrent.outputs(), n * length);
      for (fw::Index i = 0; i < n; ++i)
        trace.dy.col((i + 1) * length - 1) = trace.dlast.col(first + i);
      recurrent.backward(trace.x.middleCols(first * length, n * length), trace.recurrent[g],
                         trace.dy, trace.dx.middleCols(first * length, n * length), grad.recurrent);
    });
  }
};

/// A SequenceClassifier as its trainer sees it.
template <class Encoder>
class TrainedClassifier final
    : public RecordModel<TrainedClassifier<Encoder>, ClassifierModel, SequenceClassifier<Encoder>> {
 public:
  using Network = SequenceClassifier<Encoder>;
  using Base = RecordModel<TrainedClassifier, ClassifierModel, Network>;
  using Base::Base, Base::network;

  Score run(const SequenceBatch& batch, std::span<const int> targets, std::any& buffers,
            TrainedModel* gradient = nullptr) const override {
    if (!buffers.has_value()) buffers.emplace<Buffers>();
    auto& [trace, logits] = std::any_cast<Buffers&>(buffers);
    const auto count = static_cast<fw::Index>(targets.size());
    network.forward(batch, count, logits, trace, gradient ? fw::Pass::train : fw::Pass::infer);
    const auto answers = static_cast<long>(count);
    Score score{.examples = answers, .answers = answers};
    score.right = count_right(logits, targets);
    score.loss = static_cast<double>(fw::cross_entropy(logits, targets, logits));
    if (gradient)
      network.backward(batch, logits, trace, static_cast<TrainedClassifier&>(*gradient).network);
    return score;
  }

 private:
  struct Buffers {
    typename Network::Trace trace;
    typename Network::Matrix logits;
  };
};
