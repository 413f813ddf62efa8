#pragma once

#include <fastweights/layers/projections/gelu.hpp>
#include <fastweights/layers/projections/linear.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// The feed-forward layer of a transformer.
///
///     y = W₂ f(W₁ x + b₁) + b₂
///
/// with W₁ = `up`, W₂ = `down` and f elementwise, GELU by default. Shapes: x, y d×T, W₁ hidden×d,
/// W₂ d×hidden. Cost per token: 4 d·hidden flops. Throws std::invalid_argument when a size does not
/// fit. Vaswani et al. 2017, arXiv 1706.03762, eq. 2; GELU: Hendrycks, Gimpel 2016, arXiv
/// 1606.08415.
template <class S, class Activation = Gelu> struct FeedForward {
  using Scalar = S;
  using State = Nothing;
  static constexpr std::string_view name = "FeedForward";

  /// W_1, hidden×d.
  Linear<S> up;
  /// W_2, d×hidden.
  Linear<S> down;
  static constexpr auto names = fw::names("up", "down");

  struct Trace {
    Eigen::Matrix<S, Dynamic, Dynamic> preactivation;  ///< W₁ x + b₁
    Eigen::Matrix<S, Dynamic, Dynamic> hidden;         ///< f(preactivation)
    Eigen::Matrix<S, Dynamic, Dynamic> dhidden;        ///< backward's buffers
    Index trained = 0;  ///< tokens of the last pass if it was a train pass, else 0
  };

  /// For x of d rows. Parameters are zero until initialised or loaded. Throws std::invalid_argument
  /// for a size below 1.
  FeedForward(Index d, Index hidden, bool bias = true)
      : up(d, hidden, bias), down(hidden, d, bias) {}

  Index inputs() const { return up.inputs(); }
  Index outputs() const { return down.outputs(); }
  State initial_state() const { return {}; }

  void forward(State& state, Input<S> x, Output<S> y, Trace& trace, Pass pass = Pass::infer) const {
    detail::check_forward(*this, x, y);
    trace.preactivation.resize(up.outputs(), x.cols());
    trace.hidden.resize(up.outputs(), x.cols());
    up.forward(state, x, trace.preactivation, state);
    Activation::value(trace.preactivation, trace.hidden);
    down.forward(state, trace.hidden, y, state);
    trace.trained = pass.trains() ? x.cols() : 0;
  }

  void backward(Input<S> x, Trace& trace, Input<S> dy, Output<S> dx, FeedForward& grad) const {
    detail::check_backward(*this, x, trace.trained, dy, dx, grad);
    Nothing none;
    trace.dhidden.resize(up.outputs(), x.cols());
    down.backward(trace.hidden, none, dy, trace.dhidden, grad.down);
    Activation::vjp(trace.preactivation, trace.dhidden);
    up.backward(x, none, trace.dhidden, dx, grad.up);
  }
};

}  // namespace fw
