#pragma once

#include <algorithm>
#include <fastweights/fastweights.hpp>
#include <vector>

/// \file
/// The network of Ba et al. 2016, arXiv 1610.06258, section 4: tokens become vectors of 100, a
/// recurrent layer reads them, and 100 ReLU after its last token choose a class. Everything but the
/// recurrent layer takes the tokens of a whole batch in one product.

/// ReLU of every entry, in place, and its gradient by the result.
template <class S> void rectify(Eigen::MatrixX<S>& x) { x = x.cwiseMax(S(0)); }
template <class S> void rectify_backward(const Eigen::MatrixX<S>& y, Eigen::MatrixX<S>& dy) {
  dy.array() *= (y.array() > 0).template cast<S>();
}

/// Symbols by an embedding and a layer of ReLU. A vector depends on its symbol alone: one is made
/// for every symbol, not for every token.
template <class S = float> struct SymbolEncoder {
  using Scalar = S;
  using Matrix = Eigen::MatrixX<S>;
  using Batch = std::vector<int>;
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

  void forward(const Batch& batch, Matrix& x, Trace& trace) const {
    fw::Nothing none;
    trace.embedded = embedding.weight.transpose();
    trace.table.resize(outputs(), embedding.symbols());
    linear.forward(none, trace.embedded, trace.table, none);
    rectify(trace.table);
    x.resize(outputs(), static_cast<fw::Index>(batch.size()));
    for (fw::Index t = 0; t < x.cols(); ++t)
      x.col(t) = trace.table.col(batch[static_cast<std::size_t>(t)]);
  }

  void backward(const Batch& batch, Trace& trace, const Matrix& dx, SymbolEncoder& grad) const {
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
template <class S = float> struct VectorEncoder {
  using Scalar = S;
  using Matrix = Eigen::MatrixX<S>;
  using Batch = Matrix;
  struct Trace {
    Matrix rectified, draw, dbatch;
  };

  fw::Linear<S> linear;
  static constexpr auto names = fw::names("linear");

  VectorEncoder(fw::Index inputs, fw::Index outputs) : linear(inputs, outputs) {}

  fw::Index outputs() const { return linear.outputs(); }

  void forward(const Batch& batch, Matrix& x, Trace& trace) const {
    fw::Nothing none;
    x.resize(outputs(), batch.cols());
    linear.forward(none, batch, x, none);
    rectify(x);
    trace.rectified = x;
  }

  void backward(const Batch& batch, Trace& trace, const Matrix& dx, VectorEncoder& grad) const {
    fw::Nothing none;
    trace.draw = dx;
    rectify_backward(trace.rectified, trace.draw);
    trace.dbatch.resize(batch.rows(), batch.cols());
    linear.backward(batch, none, trace.draw, trace.dbatch, grad.linear);
  }
};

/// A recurrent layer that reads several sequences at once.
template <class L>
concept ReadsSeveral = requires(const L& layer, fw::Index sequences) {
  layer.initial_state(sequences);
};

/// Encoder, recurrent layer, 100 ReLU, logits of the classes.
template <class Encoder, fw::Layer Recurrent> struct SequenceClassifier {
  using Scalar = typename Encoder::Scalar;
  using Matrix = typename Encoder::Matrix;
  using Batch = typename Encoder::Batch;

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
  // So many sequences at a time: enough to fill a product, few enough for their states to stay in
  // the cache.
  static constexpr fw::Index group = ReadsSeveral<Recurrent> ? 32 : 1;

  // Calls f(number of the group, its first sequence, how many it has).
  template <class F> static void by_groups(fw::Index count, const F& f) {
    for (fw::Index first = 0; first < count; first += group)
      f(static_cast<std::size_t>(first / group), first, std::min(group, count - first));
  }
  auto initial_state([[maybe_unused]] fw::Index sequences) const {
    if constexpr (ReadsSeveral<Recurrent>)
      return recurrent.initial_state(sequences);
    else
      return recurrent.initial_state();
  }

  void read(fw::Index count, Trace& trace, fw::Pass pass) const {
    const fw::Index length = trace.x.cols() / count;
    const auto groups = static_cast<std::size_t>((count + group - 1) / group);
    if (trace.recurrent.size() < groups) trace.recurrent.resize(groups);
    trace.last.resize(recurrent.outputs(), count);
    by_groups(count, [&](std::size_t g, fw::Index first, fw::Index n) {
      auto state = initial_state(n);
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
