#pragma once

#include <fastweights/layers/elementwise.hpp>
#include <fastweights/layers/recurrent_weights.hpp>

namespace fw {

/// A long short-term memory with forget gate, with PyTorch's names, shapes and order of the gates.
///
///     [i; f; g; o] = W_ih x_t + b_ih + W_hh h_{t−1} + b_hh
///     c_t = σ(f) ⊙ c_{t−1} + σ(i) ⊙ tanh(g)        y_t = h_t = σ(o) ⊙ tanh(c_t)
///
/// with σ the logistic function, h_0 = c_0 = 0. Shapes: x D×T, y R×T, W_ih 4R×D, W_hh 4R×R, both
/// biases 4R (size 0 without them). Cost a token: 8 R (D + R) flops, of which 8 R D in one product
/// for all tokens. Throws std::invalid_argument when a size does not fit.
/// Hochreiter, Schmidhuber 1997, Long Short-Term Memory; the forget gate: Gers, Schmidhuber,
/// Cummins 2000, Learning to Forget.
template <class S> struct Lstm : detail::RecurrentWeights<S> {
  using Base = detail::RecurrentWeights<S>;
  using Base::inputs;
  using Base::outputs;
  using Base::weight_hh;
  using typename Base::Matrix;
  using typename Base::Vector;
  static constexpr std::string_view name = "Lstm";

  struct State {
    Vector hidden;  ///< h of the last token
    Vector cell;    ///< c of the last token
    static constexpr auto names = fw::names("hidden", "cell");
  };
  struct Trace {
    Matrix gates;          ///< 4R×T, after σ and tanh
    Matrix hidden, cells;  ///< h and c before the first token, then after each
    Matrix squashed;       ///< tanh(c)
    Index trained = 0;     ///< tokens of the last pass if it was a train pass, else 0
    Matrix draw, across;   ///< backward's room: the gradient before σ and tanh, and W_hhᵀ
    Vector dhidden, dcell;
  };

  /// Zero until initialised or loaded.
  Lstm(Index in, Index hidden, bool bias = true) : Base(name, in, hidden, 4, bias) {}

  State initial_state() const { return {Vector::Zero(outputs()), Vector::Zero(outputs())}; }

  void forward(State& state, Input<S> x, Output<S> y, Trace& trace, Pass pass = Pass::infer) const {
    detail::check_forward(*this, x, y);
    detail::check_extent(name, "hidden in the state", state.hidden, outputs(), 1);
    detail::check_extent(name, "cell in the state", state.cell, outputs(), 1);
    this->project(x, trace.gates);
    for (Matrix* room : {&trace.hidden, &trace.cells}) room->resize(outputs(), x.cols() + 1);
    trace.squashed.resize(outputs(), x.cols());
    trace.hidden.col(0) = state.hidden;
    trace.cells.col(0) = state.cell;
    for (Index t = 0; t < x.cols(); ++t) step(trace, t);
    state.hidden = trace.hidden.col(x.cols());
    state.cell = trace.cells.col(x.cols());
    y = trace.hidden.rightCols(x.cols());
    trace.trained = pass == Pass::train ? x.cols() : 0;
  }

  void backward(Input<S> x, Trace& trace, Input<S> dy, Output<S> dx, Lstm& grad) const {
    detail::check_backward(*this, x, trace.trained, dy, dx, grad);
    detail::check_extent(name, "the trace", trace.hidden, outputs(), x.cols() + 1);
    trace.draw.resize(4 * outputs(), x.cols());
    trace.across = weight_hh.transpose();  // for products along its columns
    trace.dhidden = dy.col(x.cols() - 1);
    trace.dcell.setZero(outputs());
    for (Index t = x.cols() - 1; t >= 0; --t) {
      step_backward(trace, t);
      if (t == 0) break;
      trace.dhidden = dy.col(t - 1);
      trace.dhidden.noalias() += trace.across * trace.draw.col(t);
    }
    this->project_backward(x, trace.draw, trace.hidden.leftCols(x.cols()), dx, grad);
  }

 private:
  // Gate 0 … 3 of token t, in PyTorch's order: input, forget, cell, output.
  auto gate(Matrix& gates, Index which, Index t) const {
    return gates.col(t).segment(which * outputs(), outputs()).array();
  }

  void step(Trace& trace, Index t) const {
    trace.gates.col(t).noalias() += weight_hh * trace.hidden.col(t);
    auto input = gate(trace.gates, 0, t), forget = gate(trace.gates, 1, t);
    auto candidate = gate(trace.gates, 2, t), output = gate(trace.gates, 3, t);
    input = detail::logistic(input);
    forget = detail::logistic(forget);
    candidate = candidate.tanh();
    output = detail::logistic(output);
    trace.cells.col(t + 1).array() = forget * trace.cells.col(t).array() + input * candidate;
    trace.squashed.col(t).array() = trace.cells.col(t + 1).array().tanh();
    trace.hidden.col(t + 1).array() = output * trace.squashed.col(t).array();
  }

  // From the gradients of h_t and, what comes from later tokens, of c_t to those of what the gates
  // are of, and of c_{t−1}.
  void step_backward(Trace& trace, Index t) const {
    const auto input = gate(trace.gates, 0, t), forget = gate(trace.gates, 1, t);
    const auto candidate = gate(trace.gates, 2, t), output = gate(trace.gates, 3, t);
    const auto squashed = trace.squashed.col(t).array(), before = trace.cells.col(t).array();
    const auto dh = trace.dhidden.array();
    auto dc = trace.dcell.array();
    dc += dh * output * (S(1) - squashed * squashed);
    gate(trace.draw, 0, t) = dc * candidate * input * (S(1) - input);
    gate(trace.draw, 1, t) = dc * before * forget * (S(1) - forget);
    gate(trace.draw, 2, t) = dc * input * (S(1) - candidate * candidate);
    gate(trace.draw, 3, t) = dh * squashed * output * (S(1) - output);
    dc *= forget;
  }
};

}  // namespace fw
