#pragma once

#include <cmath>
#include <fastweights/layers/layer.hpp>

namespace fw {

/// Layer normalisation of every token, with PyTorch's names, shapes and ε.
///
///     y = w ⊙ (x − μ) / √(σ² + ε) + b       μ, σ²: mean and (biased) variance over the token's
///     rows
///
/// Shapes: x, y d×T, weight and bias d. Cost a token: O(d). Throws std::invalid_argument when a
/// size does not fit. Ba, Kiros, Hinton 2016, arXiv 1607.06450, eq. 4.
template <class S> struct LayerNorm {
  using Scalar = S;
  using State = Nothing;
  static constexpr std::string_view name = "LayerNorm";

  Eigen::Matrix<S, Dynamic, 1> weight;
  Eigen::Matrix<S, Dynamic, 1> bias;
  double epsilon;
  static constexpr auto names = fw::names("weight", "bias", "epsilon");

  struct Trace {
    Eigen::Matrix<S, Dynamic, 1> mean;     ///< of every token
    Eigen::Matrix<S, Dynamic, 1> inverse;  ///< 1/√(σ² + ε) of every token
  };

  explicit LayerNorm(Index d, double eps = 1e-5) : epsilon(eps) {
    detail::check_size<Dynamic>(name, "d", d);
    weight.setOnes(d);
    bias.setZero(d);
  }

  Index inputs() const { return weight.size(); }
  Index outputs() const { return weight.size(); }
  State initial_state() const { return {}; }

  void forward(State&, Input<S> x, Output<S> y, Trace& trace, Pass = Pass::infer) const {
    detail::check_forward(*this, x, y);
    trace.mean.resize(x.cols());
    trace.inverse.resize(x.cols());
    const S n = S(static_cast<double>(inputs()));
    for (Index t = 0; t < x.cols(); ++t) {
      const S mean = x.col(t).sum() / n;
      const S variance = (x.col(t).array() - mean).square().sum() / n;
      using std::sqrt;
      const S inverse = S(1) / sqrt(variance + S(epsilon));
      y.col(t).array() = (x.col(t).array() - mean) * inverse * weight.array() + bias.array();
      trace.mean[t] = mean;
      trace.inverse[t] = inverse;
    }
  }

  /// With x̂ = (x − μ)/√(σ² + ε) and g = w ⊙ dy: dx = (g − mean(g) − x̂ mean(g ⊙ x̂)) / √(σ² + ε).
  void backward(Input<S> x, Trace& trace, Input<S> dy, Output<S> dx, LayerNorm& grad) const {
    detail::check_backward(*this, x, trace.mean.size(), dy, dx, grad);
    const S n = S(static_cast<double>(inputs()));
    for (Index t = 0; t < x.cols(); ++t) {
      const S inverse = trace.inverse[t];
      const auto normalised = (x.col(t).array() - trace.mean[t]) * inverse;
      const auto dyt = dy.col(t).array();
      const S along_ones = (weight.array() * dyt).sum() / n;
      const S along_x = (weight.array() * dyt * normalised).sum() / n;
      grad.weight.array() += dyt * normalised;
      grad.bias.array() += dyt;
      dx.col(t).array() = (weight.array() * dyt - along_ones - normalised * along_x) * inverse;
    }
  }
};

}  // namespace fw
