#pragma once

#include <cmath>
#include <fastweights/layers/layer.hpp>
#include <fastweights/math/random.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// A short causal depthwise convolution: every channel has its own filter.
///
///     y_t = b + Σ_{j<K} w_j ⊙ x_{t−K+1+j}
///
/// Zeros precede the first token. The taps have the order of PyTorch's Conv1d with
/// groups = channels: the last tap is for the current token.
/// Shapes: x, y d×T, or d×BT for B concatenated sequences, weight d×K, bias d (size 0 without one);
/// the state holds the last K − 1 tokens. Cost per token: 2 d K flops. Throws std::invalid_argument
/// when a size does not fit.
template <class S> struct CausalConv {
  using Scalar = S;
  using Matrix = Eigen::Matrix<S, Dynamic, Dynamic>;
  static constexpr std::string_view name = "CausalConv";

  Matrix weight;
  Eigen::Matrix<S, Dynamic, 1> bias;
  static constexpr auto names = fw::names("weight", "bias");

  struct State {
    Matrix recent;  ///< d×B(K − 1), the last K − 1 tokens of every sequence
    static constexpr auto names = fw::names("recent");
  };
  struct Trace {
    Matrix padded;        ///< for each sequence the K − 1 tokens before x, then x
    Index sequences = 1;  ///< B of the last pass
    Index trained = 0;    ///< tokens of the last pass if it was a train pass, else 0
  };

  /// Zero until initialised or loaded.
  CausalConv(Index channels, Index kernel, bool with_bias = true) {
    detail::check_size<Dynamic>(name, "channels", channels);
    detail::check_size<Dynamic>(name, "kernel", kernel);
    weight.setZero(channels, kernel);
    bias.setZero(with_bias ? channels : 0);
  }

  Index inputs() const { return weight.rows(); }
  Index outputs() const { return weight.rows(); }
  Index kernel() const { return weight.cols(); }
  /// The state of `sequences` concatenated sequences.
  State initial_state(Index sequences = 1) const {
    detail::check_size<Dynamic>(name, "sequences", sequences);
    return {Matrix::Zero(inputs(), sequences * (kernel() - 1))};
  }

  /// Uniform in ±1/√K, weight and bias, as PyTorch does.
  template <class Generator> void initialise(Generator& random) {
    const double bound = 1 / std::sqrt(static_cast<double>(kernel()));
    fill_uniform(random, bound, weight, bias);
  }

  void forward(State& state, Input<S> x, Output<S> y, Trace& trace, Pass pass = Pass::infer) const {
    detail::check_forward(*this, x, y);
    const Index n = check_state(state, x.cols());
    const Index padding = kernel() - 1, steps = x.cols() / n;
    trace.sequences = n;
    trace.trained = pass == Pass::train ? x.cols() : 0;
    trace.padded.resize(inputs(), n * padding + x.cols());
    for (Index b = 0; b < n; ++b) {
      auto recent = state.recent.middleCols(b * padding, padding);
      auto padded = trace.padded.middleCols(b * (padding + steps), padding + steps);
      padded.leftCols(padding) = recent;
      padded.rightCols(steps) = x.middleCols(b * steps, steps);
      recent = padded.rightCols(padding);
      for (Index t = 0; t < steps; ++t)
        convolve(padded.middleCols(t, kernel()), y.col(b * steps + t));
    }
  }

  void backward(Input<S> x, Trace& trace, Input<S> dy, Output<S> dx, CausalConv& grad) const {
    detail::check_backward(*this, x, trace.trained, dy, dx, grad);
    const Index padding = kernel() - 1, steps = x.cols() / trace.sequences;
    dx.setZero();
    for (Index t = 0; t < x.cols(); ++t) {
      const Index b = t / steps;
      for (Index j = 0; j < kernel(); ++j) {
        grad.weight.col(j) += dy.col(t).cwiseProduct(trace.padded.col(t + b * padding + j));
        const Index from = t + j - padding;
        if (from >= b * steps) dx.col(from) += weight.col(j).cwiseProduct(dy.col(t));
      }
      if (bias.size() > 0) grad.bias += dy.col(t);
    }
  }

 private:
  // The number of sequences in the state. With a kernel of 1 the state is empty, and one sequence
  // gives the same result as several.
  Index check_state(const State& state, Index columns) const {
    const Index padding = kernel() - 1;
    const Index n = detail::sequence_count(state.recent.cols(), padding);
    detail::check_extent(name, "state", state.recent, inputs(), n * padding);
    return detail::check_sequences(name, n, columns);
  }

  template <class Window, class Y> void convolve(const Window& window, Y&& y) const {
    y = weight.col(0).cwiseProduct(window.col(0));
    for (Index j = 1; j < kernel(); ++j) y += weight.col(j).cwiseProduct(window.col(j));
    if (bias.size() > 0) y += bias;
  }
};

}  // namespace fw
