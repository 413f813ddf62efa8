#pragma once

#include <fastweights/core/activations.hpp>
#include <fastweights/layers/recurrent_weights.hpp>

namespace fw {

/// A plain recurrent network, with PyTorch's names and shapes.
///
///     h_t = f(W_ih x_t + b_ih + W_hh h_{t−1} + b_hh)        y_t = h_t        h_0 = 0
///
/// f is an elementwise activation: Tanh, or Relu, which after start_at_identity() makes it the
/// IRNN. Shapes: x D×T, y R×T, W_ih R×D, W_hh R×R, both biases R (size 0 without them). Cost a
/// token: 2 R (D + R) flops, of which 2 R D in one product for all tokens. Throws
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
    Vector hidden;  ///< h of the last token
    static constexpr auto names = fw::names("hidden");
  };
  struct Trace {
    Matrix raw;           ///< what f is of
    Matrix hidden;        ///< h before the first token, then after each
    Index trained = 0;    ///< tokens of the last pass if it was a train pass, else 0
    Matrix draw, across;  ///< backward's room: the gradient of `raw`, and W_hhᵀ
    Vector dhidden;
  };

  /// Zero until initialised or loaded.
  Rnn(Index in, Index hidden, bool bias = true) : Base(name, in, hidden, 1, bias) {}

  State initial_state() const { return {Vector::Zero(outputs())}; }

  /// W_hh = scale · I and no biases: with f = ReLU the hidden units keep what they hold, or let it
  /// fade slowly.
  void start_at_identity(double scale = 1) {
    weight_hh = S(scale) * Matrix::Identity(outputs(), outputs());
    this->bias_ih.setZero();
    this->bias_hh.setZero();
  }

  void forward(State& state, Input<S> x, Output<S> y, Trace& trace, Pass pass = Pass::infer) const {
    detail::check_forward(*this, x, y);
    detail::check_extent(name, "hidden in the state", state.hidden, outputs(), 1);
    auto& hidden = trace.hidden;
    hidden.resize(outputs(), x.cols() + 1);
    this->project(x, trace.raw);
    hidden.col(0) = state.hidden;
    for (Index t = 0; t < x.cols(); ++t) {
      trace.raw.col(t).noalias() += weight_hh * hidden.col(t);
      hidden.col(t + 1).array() = detail::activated(Activation{}, trace.raw.col(t).array());
    }
    state.hidden = hidden.col(x.cols());
    y = hidden.rightCols(x.cols());
    trace.trained = pass == Pass::train ? x.cols() : 0;
  }

  /// With g_t the gradient of what f is of: g_t = f' ⊙ (dy_t + W_hhᵀ g_{t+1}).
  void backward(Input<S> x, Trace& trace, Input<S> dy, Output<S> dx, Rnn& grad) const {
    detail::check_backward(*this, x, trace.trained, dy, dx, grad);
    detail::check_extent(name, "the trace", trace.hidden, outputs(), x.cols() + 1);
    trace.draw.resize(outputs(), x.cols());
    trace.across = weight_hh.transpose();  // for products along its columns
    trace.dhidden = dy.col(x.cols() - 1);
    for (Index t = x.cols() - 1; t >= 0; --t) {
      trace.draw.col(t).array() =
          trace.dhidden.array() *
          detail::activated_derivative(Activation{}, trace.raw.col(t).array());
      if (t == 0) break;
      trace.dhidden = dy.col(t - 1);
      trace.dhidden.noalias() += trace.across * trace.draw.col(t);
    }
    this->project_backward(x, trace.draw, trace.hidden.leftCols(x.cols()), dx, grad);
  }
};

}  // namespace fw
