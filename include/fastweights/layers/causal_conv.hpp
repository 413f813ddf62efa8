#pragma once

#include <cmath>
#include <fastweights/core/random.hpp>
#include <fastweights/layers/layer.hpp>

namespace fw {

/// A short causal convolution of every channel on its own.
///
///     y_t = b + Σ_{j<K} w_j ⊙ x_{t−K+1+j}
///
/// Before the first token stand zeros. The order of the taps is that of PyTorch's Conv1d with
/// groups = channels: the last is for the current token.
/// Shapes: x, y d×T, weight d×K, bias d (size 0 without one); the state keeps the last K − 1
/// tokens. Cost a token: 2 d K flops. Throws std::invalid_argument when a size does not fit.
template <class S> struct CausalConv {
  using Scalar = S;
  using Matrix = Eigen::Matrix<S, Dynamic, Dynamic>;
  static constexpr std::string_view name = "CausalConv";

  Matrix weight;
  Eigen::Matrix<S, Dynamic, 1> bias;
  static constexpr auto names = fw::names("weight", "bias");

  struct State {
    Matrix recent;  ///< the last K − 1 tokens
    static constexpr auto names = fw::names("recent");
  };
  struct Trace {
    Matrix padded;  ///< the K − 1 tokens before x, then x
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
  State initial_state() const { return {Matrix::Zero(inputs(), kernel() - 1)}; }

  /// Uniform in ±1/√K, weight and bias, as PyTorch does.
  template <class Generator> void initialise(Generator& random) {
    const double bound = 1 / std::sqrt(static_cast<double>(kernel()));
    fill_uniform(random, bound, weight, bias);
  }

  void forward(State& state, Input<S> x, Output<S> y, Trace& trace, Pass = Pass::infer) const {
    detail::check_forward(*this, x, y);
    detail::check_extent(name, "state", state.recent, inputs(), kernel() - 1);
    const Index before = kernel() - 1;
    auto& padded = trace.padded;
    padded.resize(inputs(), before + x.cols());
    padded.leftCols(before) = state.recent;
    padded.rightCols(x.cols()) = x;
    state.recent = padded.rightCols(before);
    for (Index t = 0; t < x.cols(); ++t) {
      y.col(t) = weight.col(0).cwiseProduct(padded.col(t));
      for (Index j = 1; j < kernel(); ++j)
        y.col(t) += weight.col(j).cwiseProduct(padded.col(t + j));
      if (bias.size() > 0) y.col(t) += bias;
    }
  }

  void backward(Input<S> x, Trace& trace, Input<S> dy, Output<S> dx, CausalConv& grad) const {
    const Index before = kernel() - 1;
    detail::check_backward(*this, x, trace.padded.cols() - before, dy, dx, grad);
    dx.setZero();
    for (Index t = 0; t < x.cols(); ++t) {
      for (Index j = 0; j < kernel(); ++j) {
        grad.weight.col(j) += dy.col(t).cwiseProduct(trace.padded.col(t + j));
        if (t + j >= before) dx.col(t + j - before) += weight.col(j).cwiseProduct(dy.col(t));
      }
      if (bias.size() > 0) grad.bias += dy.col(t);
    }
  }
};

}  // namespace fw
