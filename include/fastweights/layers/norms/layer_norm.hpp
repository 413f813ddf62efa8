#pragma once

#include <cmath>
#include <fastweights/layers/layer.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// Layer normalisation of every token, with PyTorch's names, shapes and ε.
///
///     y = w ⊙ (x − μ) / √(σ² + ε) + b
///
/// μ and σ² are the mean and the (biased) variance over the rows of the token.
/// Shapes: x, y d×T, weight and bias d. Cost per token: O(d). Throws std::invalid_argument when a
/// size does not fit or ε is not above 0. Ba, Kiros, Hinton 2016, arXiv 1607.06450, eq. 4.
template <class S> struct LayerNorm {
  using Scalar = S;
  using State = Nothing;
  static constexpr std::string_view name = "LayerNorm";
  static constexpr bool in_place = true;  ///< y may be x, and dx may be dy

  Eigen::Matrix<S, Dynamic, 1> weight;
  Eigen::Matrix<S, Dynamic, 1> bias;
  double epsilon;
  static constexpr auto names = fw::names("weight", "bias", "epsilon");

  struct Trace {
    Eigen::Matrix<S, Dynamic, 1> mean;     ///< of every token
    Eigen::Matrix<S, Dynamic, 1> inverse;  ///< 1/√(σ² + ε) of every token
    Index trained = 0;  ///< tokens of the last pass if it was a train pass, else 0
  };

  /// For x of d rows: w is 1 and b is 0. Throws std::invalid_argument for d < 1 or eps ≤ 0.
  explicit LayerNorm(Index d, double eps = 1e-5) : epsilon(eps) {
    detail::check_size<Dynamic>(name, "d", d);
    detail::check_above_zero(name, "epsilon", eps);
    weight.setOnes(d);
    bias.setZero(d);
  }

  Index inputs() const { return weight.size(); }
  Index outputs() const { return weight.size(); }
  State initial_state() const { return {}; }

  void forward(State&, Input<S> x, Output<S> y, Trace& trace, Pass pass = Pass::infer) const {
    detail::check_forward(*this, x, y);
    trace.mean.resize(x.cols());
    trace.inverse.resize(x.cols());
    for (Index t = 0; t < x.cols(); ++t)
      normalise(x.col(t), y.col(t), trace.mean[t], trace.inverse[t]);
    trace.trained = pass.trains() ? x.cols() : 0;
  }

  /// With x̂ = (x − μ)/√(σ² + ε) and g = w ⊙ dy: dx = (g − mean(g) − x̂ mean(g ⊙ x̂)) / √(σ² + ε).
  void backward(Input<S> x, Trace& trace, Input<S> dy, Output<S> dx, LayerNorm& grad) const {
    detail::check_backward(*this, x, trace.trained, dy, dx, grad);
    for (Index t = 0; t < x.cols(); ++t)
      normalise_vjp(x.col(t), trace.mean[t], trace.inverse[t], dy.col(t), dx.col(t), grad);
  }

  /// Normalises one token, for layers that normalise inside a loop. Checks nothing.
  template <class X, class Y> void normalise(const X& x, Y&& y, S& mean, S& inverse) const {
    using std::sqrt;
    const S n = S(static_cast<double>(inputs()));
    mean = x.sum() / n;
    const S variance = (x.array() - mean).square().sum() / n;
    inverse = S(1) / sqrt(variance + S(epsilon));
    y.array() = (x.array() - mean) * inverse * weight.array() + bias.array();
  }

  /// The backward pass of one token.
  template <class X, class Dy, class Dx>
  void normalise_vjp(const X& x, const S& mean, const S& inverse, const Dy& dy, Dx&& dx,
                     LayerNorm& grad) const {
    const S n = S(static_cast<double>(inputs()));
    const auto normalised = (x.array() - mean) * inverse;
    const S mean_g = (weight.array() * dy.array()).sum() / n;
    const S mean_gx = (weight.array() * dy.array() * normalised).sum() / n;
    grad.weight.array() += dy.array() * normalised;
    grad.bias.array() += dy.array();
    dx.array() = (weight.array() * dy.array() - mean_g - normalised * mean_gx) * inverse;
  }
};

}  // namespace fw
