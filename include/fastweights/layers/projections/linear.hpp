#pragma once

#include <cmath>
#include <fastweights/layers/layer.hpp>
#include <fastweights/math/products.hpp>
#include <fastweights/math/random.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// An affine map of every token, with PyTorch's names and shapes.
///
///     y = W x + b
///
/// Shapes: x in×T, y out×T, weight out×in, bias out (size 0 without one). Cost per token: 2 in·out
/// flops. Throws std::invalid_argument when a size does not fit.
template <class S> struct Linear {
  using Scalar = S;
  using State = Nothing;
  using Trace = Nothing;
  static constexpr std::string_view name = "Linear";

  Eigen::Matrix<S, Dynamic, Dynamic> weight;
  Eigen::Matrix<S, Dynamic, 1> bias;
  static constexpr auto names = fw::names("weight", "bias");

  /// Zero until initialised or loaded.
  Linear(Index in, Index out, bool with_bias = true) {
    detail::check_size<Dynamic>(name, "in", in);
    detail::check_size<Dynamic>(name, "out", out);
    weight.setZero(out, in);
    bias.setZero(with_bias ? out : 0);
  }

  Index inputs() const { return weight.cols(); }
  Index outputs() const { return weight.rows(); }
  State initial_state() const { return {}; }

  /// Uniform in ±1/√in, weight and bias, as PyTorch does.
  template <class Generator> void initialise(Generator& random) {
    const double bound = 1 / std::sqrt(static_cast<double>(inputs()));
    fill_uniform(random, bound, weight, bias);
  }

  void forward(State&, Input<S> x, Output<S> y, Trace&, Pass = Pass::infer) const {
    detail::check_forward(*this, x, y);
    if (bias.size() > 0) {
      y.colwise() = bias;
      detail::add_product(y, weight, x, detail::all_at_once);
    } else {
      detail::set_product(y, weight, x, detail::all_at_once);
    }
  }

  void backward(Input<S> x, Trace&, Input<S> dy, Output<S> dx, Linear& grad) const {
    detail::check_backward(*this, x, x.cols(), dy, dx, grad);
    add_gradient(x, dy, grad);
    detail::set_product(dx, weight.transpose(), dy, detail::all_at_once);
  }

  /// As backward, but adds to dx, for several projections of the same x.
  void add_backward(const Input<S>& x, const Input<S>& dy, Output<S>& dx, Linear& grad) const {
    add_gradient(x, dy, grad);
    detail::add_product(dx, weight.transpose(), dy, detail::all_at_once);
  }

 private:
  void add_gradient(const Input<S>& x, const Input<S>& dy, Linear& grad) const {
    detail::add_product(grad.weight, dy, x.transpose(), detail::all_at_once);
    if (bias.size() > 0) grad.bias += dy.rowwise().sum();
  }
};

}  // namespace fw
