#pragma once

#include <fastweights/layers/projections/elementwise.hpp>
#include <fastweights/layers/projections/linear.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// The gated feed-forward layer.
///
///     y = W_down (silu(W_gate x) ⊙ W_up x)
///
/// Shapes: gate and up hidden×d, down d×hidden, without biases by default. Cost per token:
/// 6 d·hidden flops. Throws std::invalid_argument when a size does not fit.
/// Shazeer 2020, arXiv 2002.05202, eq. 6.
template <class S> struct SwiGlu {
  using Scalar = S;
  using State = Nothing;
  static constexpr std::string_view name = "SwiGlu";

  /// W_gate, hidden×d.
  Linear<S> gate;
  /// W_up, hidden×d.
  Linear<S> up;
  /// W_down, d×hidden.
  Linear<S> down;
  static constexpr auto names = fw::names("gate", "up", "down");

  struct Trace {
    using Matrix = Eigen::Matrix<S, Dynamic, Dynamic>;
    Matrix gate, activated;      ///< W_gate x and its silu
    Matrix up, hidden;           ///< W_up x and activated ⊙ up
    Matrix dgate, dup, dhidden;  ///< backward's buffers
    Index trained = 0;           ///< tokens of the last pass if it was a train pass, else 0
  };

  /// For x of d rows. Parameters are zero until initialised or loaded. Throws std::invalid_argument
  /// for a size below 1.
  SwiGlu(Index d, Index hidden, bool bias = false)
      : gate(d, hidden, bias), up(d, hidden, bias), down(hidden, d, bias) {}

  Index inputs() const { return up.inputs(); }
  Index outputs() const { return down.outputs(); }
  State initial_state() const { return {}; }

  void forward(State& state, Input<S> x, Output<S> y, Trace& trace, Pass pass = Pass::infer) const {
    detail::check_forward(*this, x, y);
    for (auto* buffer : {&trace.gate, &trace.activated, &trace.up, &trace.hidden})
      buffer->resize(up.outputs(), x.cols());
    gate.forward(state, x, trace.gate, state);
    up.forward(state, x, trace.up, state);
    Silu::value(trace.gate, trace.activated);
    trace.hidden = trace.activated.cwiseProduct(trace.up);
    down.forward(state, trace.hidden, y, state);
    trace.trained = pass.trains() ? x.cols() : 0;
  }

  void backward(Input<S> x, Trace& trace, Input<S> dy, Output<S> dx, SwiGlu& grad) const {
    detail::check_backward(*this, x, trace.trained, dy, dx, grad);
    Nothing none;
    trace.dhidden.resize(up.outputs(), x.cols());
    down.backward(trace.hidden, none, dy, trace.dhidden, grad.down);
    trace.dgate = trace.dhidden.cwiseProduct(trace.up);
    trace.dup = trace.dhidden.cwiseProduct(trace.activated);
    Silu::vjp(trace.gate, trace.dgate);
    gate.backward(x, none, trace.dgate, dx, grad.gate);
    up.add_backward(x, trace.dup, dx, grad.up);
  }
};

}  // namespace fw
