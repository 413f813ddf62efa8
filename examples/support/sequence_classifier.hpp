#pragma once

#include <fastweights/fastweights.hpp>
#include <vector>

/// \file
/// The network of Ba et al. 2016, arXiv 1610.06258, section 4: tokens become vectors of 100, a
/// recurrent layer reads them, and 100 ReLU after its last token choose a class. Everything but the
/// recurrent layer takes the tokens of a whole batch in one product.

/// ReLU of every entry, in place, and its gradient by the result.
inline void rectify(Eigen::MatrixXf& x) { x = x.cwiseMax(0.0f); }
inline void rectify_backward(const Eigen::MatrixXf& y, Eigen::MatrixXf& dy) {
  dy.array() *= (y.array() > 0).cast<float>();
}

/// Symbols by an embedding and a layer of ReLU. A vector depends on its symbol alone: one is made
/// for every symbol, not for every token.
struct SymbolEncoder {
  using Batch = std::vector<int>;
  struct Trace {
    Eigen::MatrixXf embedded, table, dtable, dembedded;  ///< one column a symbol
  };

  fw::Embedding<float> embedding;
  fw::Linear<float> linear;
  static constexpr auto names = fw::names("embedding", "linear");

  SymbolEncoder(fw::Index symbols, fw::Index embedded, fw::Index outputs)
      : embedding(symbols, embedded), linear(embedded, outputs) {}

  fw::Index outputs() const { return linear.outputs(); }
  template <class Generator> void initialise(Generator& random) {
    random.fill(embedding.weight, 1.0);
    linear.initialise(random);
  }

  void forward(const Batch& batch, Eigen::MatrixXf& x, Trace& trace) const {
    fw::Nothing none;
    trace.embedded = embedding.weight.transpose();
    trace.table.resize(outputs(), embedding.symbols());
    linear.forward(none, trace.embedded, trace.table, none);
    rectify(trace.table);
    x.resize(outputs(), static_cast<fw::Index>(batch.size()));
    for (fw::Index t = 0; t < x.cols(); ++t)
      x.col(t) = trace.table.col(batch[static_cast<std::size_t>(t)]);
  }

  void backward(const Batch& batch, Trace& trace, const Eigen::MatrixXf& dx,
                SymbolEncoder& grad) const {
    fw::Nothing none;
    trace.dtable.setZero(outputs(), embedding.symbols());
    for (fw::Index t = 0; t < dx.cols(); ++t)
      trace.dtable.col(batch[static_cast<std::size_t>(t)]) += dx.col(t);
    rectify_backward(trace.table, trace.dtable);
    trace.dembedded.resize(trace.embedded.rows(), trace.embedded.cols());
    linear.backward(trace.embedded, none, trace.dtable, trace.dembedded, grad.linear);
    grad.embedding.weight += trace.dembedded.transpose();
  }
};

/// Vectors, one a column, by a layer of ReLU.
struct VectorEncoder {
  using Batch = Eigen::MatrixXf;
  struct Trace {
    Eigen::MatrixXf rectified, draw, dbatch;
  };

  fw::Linear<float> linear;
  static constexpr auto names = fw::names("linear");

  VectorEncoder(fw::Index inputs, fw::Index outputs) : linear(inputs, outputs) {}

  fw::Index outputs() const { return linear.outputs(); }

  void forward(const Batch& batch, Eigen::MatrixXf& x, Trace& trace) const {
    fw::Nothing none;
    x.resize(outputs(), batch.cols());
    linear.forward(none, batch, x, none);
    rectify(x);
    trace.rectified = x;
  }

  void backward(const Batch& batch, Trace& trace, const Eigen::MatrixXf& dx,
                VectorEncoder& grad) const {
    fw::Nothing none;
    trace.draw = dx;
    rectify_backward(trace.rectified, trace.draw);
    trace.dbatch.resize(batch.rows(), batch.cols());
    linear.backward(batch, none, trace.draw, trace.dbatch, grad.linear);
  }
};

/// Encoder, recurrent layer, 100 ReLU, logits of the classes.
template <class Encoder, fw::Layer Recurrent> struct SequenceClassifier {
  using Matrix = Eigen::MatrixXf;
  using Batch = typename Encoder::Batch;

  Encoder encoder;
  Recurrent recurrent;
  fw::Linear<float> hidden;
  fw::Linear<float> output;
  static constexpr auto names = fw::names("encoder", "recurrent", "hidden", "output");

  struct Trace {
    typename Encoder::Trace encoder;
    std::vector<typename Recurrent::Trace> recurrent;  ///< one a sequence
    Matrix x, y, last, rectified;  ///< y of one sequence; last: its last column, of all sequences
    Matrix dx, dy, dlast, drectified;
    std::vector<typename Recurrent::State> state;  ///< initial and present
  };

  SequenceClassifier(Encoder e, Recurrent r, fw::Index units, fw::Index classes)
      : encoder(std::move(e)),
        recurrent(std::move(r)),
        hidden(recurrent.outputs(), units),
        output(units, classes) {}

  /// Logits classes×count of a batch of `count` sequences, equally long, one behind the other.
  void forward(const Batch& batch, fw::Index count, Matrix& logits, Trace& trace,
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
  void backward(const Batch& batch, const Matrix& dlogits, Trace& trace,
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
  void read(fw::Index count, Trace& trace, fw::Pass pass) const {
    const fw::Index length = trace.x.cols() / count;
    if (trace.recurrent.size() < static_cast<std::size_t>(count))
      trace.recurrent.resize(static_cast<std::size_t>(count));
    if (trace.state.empty()) trace.state.assign(2, recurrent.initial_state());
    trace.y.resize(recurrent.outputs(), length);
    trace.last.resize(recurrent.outputs(), count);
    for (fw::Index i = 0; i < count; ++i) {
      trace.state[1] = trace.state[0];
      recurrent.forward(trace.state[1], trace.x.middleCols(i * length, length), trace.y,
                        trace.recurrent[static_cast<std::size_t>(i)], pass);
      trace.last.col(i) = trace.y.col(length - 1);
    }
  }

  void read_backward(fw::Index count, Trace& trace, SequenceClassifier& grad) const {
    const fw::Index length = trace.x.cols() / count;
    trace.dx.resize(trace.x.rows(), trace.x.cols());
    trace.dy.setZero(recurrent.outputs(), length);
    for (fw::Index i = 0; i < count; ++i) {
      trace.dy.col(length - 1) = trace.dlast.col(i);
      recurrent.backward(trace.x.middleCols(i * length, length),
                         trace.recurrent[static_cast<std::size_t>(i)], trace.dy,
                         trace.dx.middleCols(i * length, length), grad.recurrent);
    }
  }
};
