#pragma once

#include <fastweights/layers/projections/elementwise.hpp>
#include <fastweights/layers/recurrent/recurrent_weights.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// A long short-term memory (LSTM) with forget gate, with PyTorch's names, shapes and gate order.
///
///     [i; f; g; o] = W_ih x_t + b_ih + W_hh h_{t−1} + b_hh
///     c_t = σ(f) ⊙ c_{t−1} + σ(i) ⊙ tanh(g)        y_t = h_t = σ(o) ⊙ tanh(c_t)
///
/// with σ the logistic function, h_0 = c_0 = 0. Shapes: x D×T, y R×T, W_ih 4R×D, W_hh 4R×R, both
/// biases 4R (size 0 without them); for B concatenated sequences x D×BT and y R×BT. Cost per token:
/// 8 R (D + R) flops: 8 R D in one product for all tokens, and 8 R² in one product per time step
/// for all sequences. Throws std::invalid_argument when a size does not fit. Hochreiter,
/// Schmidhuber 1997, Long Short-Term Memory; the forget gate: Gers, Schmidhuber, Cummins 2000,
/// Learning to Forget.
template <class S> struct Lstm : detail::RecurrentWeights<S> {
  using Base = detail::RecurrentWeights<S>;
  using Base::inputs;
  using Base::outputs;
  using Base::weight_hh;
  using typename Base::Matrix;
  using typename Base::Vector;
  static constexpr std::string_view name = "Lstm";

  struct State {
    Matrix hidden;  ///< h of the last token, one column per sequence
    Matrix cell;    ///< c of the last token
    static constexpr auto names = fw::names("hidden", "cell");
  };
  struct Trace {
    Matrix gates;                           ///< 4R×T, after σ and tanh
    Matrix previous_hidden, previous_cell;  ///< h_{t−1} and c_{t−1} of every token
    Matrix tanh_cell;                       ///< tanh(c_t)
    Index sequences = 1;                    ///< B of the last pass
    Index trained = 0;  ///< tokens of the last pass if it was a train pass, else 0
    Matrix dpreactivation, weight_hh_transposed, dhidden, dcell;  ///< backward's buffers
  };

  /// Zero until initialised or loaded.
  Lstm(Index in, Index hidden, bool bias = true) : Base(name, in, hidden, 4, bias) {}

  /// The state of `sequences` concatenated sequences.
  State initial_state(Index sequences = 1) const {
    detail::check_size<Dynamic>(name, "sequences", sequences);
    return {Matrix::Zero(outputs(), sequences), Matrix::Zero(outputs(), sequences)};
  }

  void forward(State& state, Input<S> x, Output<S> y, Trace& trace, Pass pass = Pass::infer) const {
    detail::check_forward(*this, x, y);
    detail::check_whole(name, pass);
    const Index n = detail::check_sequences(name, state.hidden.cols(), x.cols());
    detail::check_extent(name, "hidden in the state", state.hidden, outputs(), n);
    detail::check_extent(name, "cell in the state", state.cell, outputs(), n);
    trace.sequences = n;
    this->project(x, trace.gates);
    for (Matrix* buffer : {&trace.previous_hidden, &trace.previous_cell, &trace.tanh_cell})
      buffer->resize(outputs(), x.cols());
    for (Index t = 0; t < x.cols() / n; ++t) {
      step(state, trace, t);
      detail::token_of_each(y, t, n) = state.hidden;
    }
    trace.trained = pass.trains() ? x.cols() : 0;
  }

  void backward(Input<S> x, Trace& trace, Input<S> dy, Output<S> dx, Lstm& grad) const {
    detail::check_backward(*this, x, trace.trained, dy, dx, grad);
    detail::check_extent(name, "the trace", trace.previous_hidden, outputs(), x.cols());
    const Index n = trace.sequences;
    trace.dpreactivation.resize(4 * outputs(), x.cols());
    trace.weight_hh_transposed = weight_hh.transpose();  // for products with contiguous columns
    trace.dhidden.setZero(outputs(), n);
    trace.dcell.setZero(outputs(), n);
    for (Index t = x.cols() / n - 1; t >= 0; --t) {
      trace.dhidden += detail::token_of_each(dy, t, n);
      step_backward(trace, t);
      trace.dhidden.setZero();
      if (t > 0)
        detail::add_weighted(trace.dhidden, trace.weight_hh_transposed,
                             detail::token_of_each(trace.dpreactivation, t, n));
    }
    this->project_backward(x, trace.dpreactivation, trace.previous_hidden, dx, grad);
  }

 private:
  // The gates in PyTorch's order 0 … 3: input, forget, cell, output.
  template <class Gates> auto gate(Gates& gates, Index which) const {
    return gates.middleRows(which * outputs(), outputs()).array();
  }

  void step(State& state, Trace& trace, Index t) const {
    const Index n = trace.sequences;
    detail::token_of_each(trace.previous_hidden, t, n) = state.hidden;
    detail::token_of_each(trace.previous_cell, t, n) = state.cell;
    auto gates = detail::token_of_each(trace.gates, t, n);
    detail::add_weighted(gates, weight_hh, state.hidden);
    auto input = gate(gates, 0), forget = gate(gates, 1);
    auto candidate = gate(gates, 2), output = gate(gates, 3);
    input = detail::logistic(input);
    forget = detail::logistic(forget);
    candidate = candidate.tanh();
    output = detail::logistic(output);
    auto tanh_cell = detail::token_of_each(trace.tanh_cell, t, n);
    state.cell.array() = forget * state.cell.array() + input * candidate;
    tanh_cell.array() = state.cell.array().tanh();
    state.hidden.array() = output * tanh_cell.array();
  }

  // Computes the gradients of the preactivations and of c_{t−1} from those of h_t and of c_t, where
  // dc holds the part from later tokens.
  void step_backward(Trace& trace, Index t) const {
    const Index n = trace.sequences;
    const auto gates = detail::token_of_each(trace.gates, t, n);
    const auto input = gate(gates, 0), forget = gate(gates, 1);
    const auto candidate = gate(gates, 2), output = gate(gates, 3);
    const auto tanh_cell = detail::token_of_each(trace.tanh_cell, t, n).array();
    const auto previous_cell = detail::token_of_each(trace.previous_cell, t, n).array();
    const auto dh = trace.dhidden.array();
    auto dc = trace.dcell.array();
    dc += dh * output * (S(1) - tanh_cell * tanh_cell);
    auto dpreactivation = detail::token_of_each(trace.dpreactivation, t, n);
    gate(dpreactivation, 0) = dc * candidate * input * (S(1) - input);
    gate(dpreactivation, 1) = dc * previous_cell * forget * (S(1) - forget);
    gate(dpreactivation, 2) = dc * input * (S(1) - candidate * candidate);
    gate(dpreactivation, 3) = dh * tanh_cell * output * (S(1) - output);
    dc *= forget;
  }
};

}  // namespace fw
