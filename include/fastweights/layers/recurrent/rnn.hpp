#pragma once

#include <fastweights/layers/recurrent/recurrent_weights.hpp>
#include <fastweights/math/activations.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// A plain recurrent network, with PyTorch's names and shapes.
///
///     h_t = f(W_ih x_t + b_ih + W_hh h_{t−1} + b_hh)        y_t = h_t        h_0 = 0
///
/// f is an elementwise activation, Tanh or Relu. With Relu and start_at_identity() the layer is the
/// IRNN. Shapes: x D×T, y R×T, W_ih R×D, W_hh R×R, both biases R (size 0 without them); for B
/// concatenated sequences x D×BT and y R×BT. Cost per token: 2 R (D + R) flops; one product applies
/// W_ih to all tokens, and one per time step applies W_hh to all sequences. Throws
/// std::invalid_argument when a size does not fit. Elman 1990, Finding Structure in Time; IRNN: Le,
/// Jaitly, Hinton 2015, arXiv 1504.00941.
template <class S, class Activation = Tanh> struct Rnn : detail::RecurrentWeights<S> {
  using Base = detail::RecurrentWeights<S>;
  using Base::inputs;
  using Base::outputs;
  using Base::weight_hh;
  using typename Base::Matrix;
  using typename Base::Vector;
  static constexpr std::string_view name = "Rnn";

  struct State {
    Matrix hidden;  ///< h of the last token, one column per sequence
    static constexpr auto names = fw::names("hidden");
  };
  struct Trace {
    Matrix preactivation;    ///< the argument of f
    Matrix previous_hidden;  ///< h_{t−1} of every token
    Index sequences = 1;     ///< B of the last pass
    Index trained = 0;       ///< tokens of the last pass if it was a train pass, else 0
    Matrix dpreactivation, weight_hh_transposed, dhidden;  ///< backward's buffers
  };

  /// Zero until initialised or loaded.
  Rnn(Index in, Index hidden, bool bias = true) : Base(name, in, hidden, 1, bias) {}

  /// The state of `sequences` concatenated sequences.
  State initial_state(Index sequences = 1) const {
    detail::check_size<Dynamic>(name, "sequences", sequences);
    return {Matrix::Zero(outputs(), sequences)};
  }

  /// Sets W_hh = scale · I and the biases to 0. With f = ReLU the hidden units then keep their
  /// values, or decay slowly for a scale below 1.
  void start_at_identity(double scale = 1) {
    weight_hh = S(scale) * Matrix::Identity(outputs(), outputs());
    this->bias_ih.setZero();
    this->bias_hh.setZero();
  }

  void forward(State& state, Input<S> x, Output<S> y, Trace& trace, Pass pass = Pass::infer) const {
    detail::check_forward(*this, x, y);
    detail::check_whole(name, pass);
    const Index n = detail::check_sequences(name, state.hidden.cols(), x.cols());
    detail::check_extent(name, "hidden in the state", state.hidden, outputs(), n);
    trace.sequences = n;
    this->project(x, trace.preactivation);
    trace.previous_hidden.resize(outputs(), x.cols());
    for (Index t = 0; t < x.cols() / n; ++t) {
      auto preactivation = detail::token_of_each(trace.preactivation, t, n);
      detail::token_of_each(trace.previous_hidden, t, n) = state.hidden;
      detail::add_weighted(preactivation, weight_hh, state.hidden);
      state.hidden.array() = detail::activated(Activation{}, preactivation.array());
      detail::token_of_each(y, t, n) = state.hidden;
    }
    trace.trained = pass.trains() ? x.cols() : 0;
  }

  /// With g_t the gradient of the preactivation: g_t = f' ⊙ (dy_t + W_hhᵀ g_{t+1}).
  void backward(Input<S> x, Trace& trace, Input<S> dy, Output<S> dx, Rnn& grad) const {
    detail::check_backward(*this, x, trace.trained, dy, dx, grad);
    detail::check_extent(name, "the trace", trace.previous_hidden, outputs(), x.cols());
    const Index n = trace.sequences;
    trace.dpreactivation.resize(outputs(), x.cols());
    trace.weight_hh_transposed = weight_hh.transpose();  // for products with contiguous columns
    trace.dhidden.setZero(outputs(), n);
    for (Index t = x.cols() / n - 1; t >= 0; --t) {
      auto dpreactivation = detail::token_of_each(trace.dpreactivation, t, n);
      const auto preactivation = detail::token_of_each(trace.preactivation, t, n);
      trace.dhidden += detail::token_of_each(dy, t, n);
      dpreactivation.array() =
          trace.dhidden.array() * detail::activated_derivative(Activation{}, preactivation.array());
      trace.dhidden.setZero();
      if (t > 0) detail::add_weighted(trace.dhidden, trace.weight_hh_transposed, dpreactivation);
    }
    this->project_backward(x, trace.dpreactivation, trace.previous_hidden, dx, grad);
  }
};

}  // namespace fw
