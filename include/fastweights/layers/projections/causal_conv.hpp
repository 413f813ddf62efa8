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
  static constexpr bool in_place = true;  ///< y may be x, and dx may be dy

  Matrix weight;
  Eigen::Matrix<S, Dynamic, 1> bias;
  static constexpr auto names = fw::names("weight", "bias");

  struct State {
    Matrix recent;  ///< d×B(K − 1), the last K − 1 tokens of every sequence
    static constexpr auto names = fw::names("recent");
  };
  struct Trace {
    Matrix padded;           ///< for each sequence the K − 1 tokens before x, then x
    Index sequences = 1;     ///< B of the last pass
    Index trained = 0;       ///< tokens of the last pass if it was a train pass, else 0
    Relay* relay = nullptr;  ///< that of the last pass
    Matrix dpadded;          ///< backward's buffer
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
  /// K, the tokens that the kernel covers.
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
    detail::check_forward_sizes(*this, x, y);  // no tokens change nothing, as in a memory
    const Index n = check_state(state, x.cols());
    const Index padding = kernel() - 1, steps = x.cols() / n;
    trace.sequences = n;
    trace.trained = pass.trains() ? x.cols() : 0;
    trace.relay = pass.relay();
    const bool sends_early = trace.relay != nullptr && steps >= padding;
    if (sends_early) send_last(*trace.relay, x, n);
    if (trace.relay != nullptr) trace.relay->receive_state(detail::object(state));
    trace.padded.resize(inputs(), n * padding + x.cols());
    for (Index b = 0; b < n; ++b) {
      auto padded = sequence(trace.padded, b, n);
      padded.leftCols(padding) = state.recent.middleCols(b * padding, padding);
      padded.rightCols(steps) = x.middleCols(b * steps, steps);
      state.recent.middleCols(b * padding, padding) = padded.rightCols(padding);
    }
    if (trace.relay != nullptr && !sends_early) trace.relay->send_state(detail::object(state));
    for (Index b = 0; b < n; ++b)
      for (Index t = 0; t < steps; ++t)
        convolve(sequence(trace.padded, b, n).middleCols(t, kernel()), y.col(b * steps + t));
  }

  void backward(Input<S> x, Trace& trace, Input<S> dy, Output<S> dx, CausalConv& grad) const {
    detail::check_backward(*this, x, trace.trained, dy, dx, grad);
    const Index padding = kernel() - 1, n = trace.sequences, steps = x.cols() / n;
    trace.dpadded.setZero(trace.padded.rows(), trace.padded.cols());
    for (Index t = 0; t < x.cols(); ++t) {
      const Index first = t + t / steps * padding;
      for (Index j = 0; j < kernel(); ++j) {
        grad.weight.col(j) += dy.col(t).cwiseProduct(trace.padded.col(first + j));
        trace.dpadded.col(first + j) += weight.col(j).cwiseProduct(dy.col(t));
      }
      if (bias.size() > 0) grad.bias += dy.col(t);
    }
    exchange_gradients(trace, steps);
    for (Index b = 0; b < n; ++b)
      dx.middleCols(b * steps, steps) = sequence(trace.dpadded, b, n).rightCols(steps);
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

  // The columns of sequence b of n.
  static auto sequence(Matrix& padded, Index b, Index n) {
    return padded.middleCols(b * (padded.cols() / n), padded.cols() / n);
  }

  // The next part waits for the last K − 1 tokens, but not for those that this part waits for.
  void send_last(Relay& relay, const Input<S>& x, Index n) const {
    const Index padding = kernel() - 1, steps = x.cols() / n;
    State last = initial_state(n);
    for (Index b = 0; b < n; ++b)
      last.recent.middleCols(b * padding, padding) =
          x.middleCols((b + 1) * steps - padding, padding);
    relay.send_state(detail::object(last));
  }
  // In the same way in the other direction.
  void exchange_gradients(Trace& trace, Index steps) const {
    if (trace.relay == nullptr) return;
    const bool sends_early = steps >= kernel() - 1;
    if (sends_early) send_gradient(trace);
    receive_gradient(trace);
    if (!sends_early) send_gradient(trace);
  }
  // The gradient of the last K − 1 tokens from the part behind.
  void receive_gradient(Trace& trace) const {
    const Index padding = kernel() - 1, n = trace.sequences;
    State last = initial_state(n);
    trace.relay->receive_gradient(detail::object(last));
    for (Index b = 0; b < n; ++b)
      sequence(trace.dpadded, b, n).rightCols(padding) +=
          last.recent.middleCols(b * padding, padding);
  }
  void send_gradient(Trace& trace) const {
    const Index padding = kernel() - 1, n = trace.sequences;
    State first = initial_state(n);
    for (Index b = 0; b < n; ++b)
      first.recent.middleCols(b * padding, padding) =
          sequence(trace.dpadded, b, n).leftCols(padding);
    trace.relay->send_gradient(detail::object(first));
  }

  template <class Window, class Y> void convolve(const Window& window, Y&& y) const {
    y = weight.col(0).cwiseProduct(window.col(0));
    for (Index j = 1; j < kernel(); ++j) y += weight.col(j).cwiseProduct(window.col(j));
    if (bias.size() > 0) y += bias;
  }
};

}  // namespace fw
