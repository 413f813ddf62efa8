#pragma once

#include <cmath>
#include <fastweights/layers/attention/smoothing_gate.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// Compresses c = `rate` tokens to one by a learned convolution of width and stride c. It is the
/// gate in front of a CompressiveMemory of rate 1.
///
///     y_j = W [x_{cj}; …; x_{cj+c−1}] + b
///
/// Shapes: x d×L, y d×⌈L/c⌉; weight d×cd, PyTorch's Conv1d weight [d, d, c] with its last two axes
/// merged; bias d. Zeros pad a chunk to a multiple of the rate. Cost: 2 d² flops per token. Throws
/// std::invalid_argument when a size does not fit. Rae et al. 2019, arXiv 1911.05507, section 3.1
/// ("1D convolution").
template <class S> struct StridedConv {
  using Scalar = S;
  using Matrix = Eigen::Matrix<S, Dynamic, Dynamic>;
  static constexpr std::string_view name = "StridedConv";

  Matrix weight;
  Eigen::Matrix<S, Dynamic, 1> bias;
  static constexpr auto names = fw::names("weight", "bias");

  struct Trace {
    Matrix patches, dpatches;  ///< cd×⌈L/c⌉: feature i of the patch's token j in row c i + j
  };

  /// Zero until initialised or loaded.
  StridedConv(Index d, Index rate) {
    detail::check_size<Dynamic>(name, "d", d);
    detail::check_size<Dynamic>(name, "rate", rate);
    weight.setZero(d, rate * d);
    bias.setZero(d);
  }

  Index inputs() const { return weight.rows(); }
  /// The tokens that become one.
  Index rate() const { return weight.cols() / weight.rows(); }
  /// The columns of y for `tokens` columns of x.
  Index length(Index tokens) const { return (tokens + rate() - 1) / rate(); }

  /// Starts as the mean of the patch: a convolution that starts as mean pooling learns faster than
  /// one with random weights.
  template <class Generator> void initialise(Generator&) {
    weight.setZero();
    for (Index i = 0; i < weight.rows(); ++i)
      weight.row(i).segment(rate() * i, rate()).setConstant(S(1.0 / static_cast<double>(rate())));
    bias.setZero();
  }

  void forward(Input<S> x, Output<S> y, Trace& trace) const {
    detail::check_gate(*this, x, "y", y.rows(), y.cols());
    trace.patches.setZero(weight.cols(), length(x.cols()));
    for (Index l = 0; l < x.cols(); ++l)
      for (Index i = 0; i < x.rows(); ++i) trace.patches(row(i, l), l / rate()) = x(i, l);
    detail::set_product(y, weight, trace.patches, detail::one_block);
    y.colwise() += bias;
  }

  /// dx overwritten, grad accumulated.
  void backward(Input<S> x, Trace& trace, Input<S> dy, Output<S> dx, StridedConv& grad) const {
    detail::check_gate_backward(*this, x, trace.patches.cols(), dy, dx, grad);
    detail::add_product(grad.weight, dy, trace.patches.transpose(), detail::one_block);
    grad.bias += dy.rowwise().sum();
    trace.dpatches.resize(weight.cols(), dy.cols());
    detail::set_product(trace.dpatches, weight.transpose(), dy, detail::one_block);
    for (Index l = 0; l < x.cols(); ++l)
      for (Index i = 0; i < x.rows(); ++i) dx(i, l) = trace.dpatches(row(i, l), l / rate());
  }

 private:
  Index row(Index i, Index l) const { return rate() * i + l % rate(); }
};

}  // namespace fw
