#pragma once

#include <cmath>
#include <fastweights/layers/layer.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// Divides every token by its root mean square.
///
///     y = w ⊙ x / √(mean(x²) + ε)
///
/// Shapes: x, y d×T, weight d. Cost per token: O(d). Throws std::invalid_argument when a size does
/// not fit or ε is not above 0. Zhang, Sennrich 2019, arXiv 1910.07467, eq. 4.
template <class S> struct RmsNorm {
  using Scalar = S;
  using State = Nothing;
  static constexpr std::string_view name = "RmsNorm";
  static constexpr bool in_place = true;  ///< y may be x, and dx may be dy

  Eigen::Matrix<S, Dynamic, 1> weight;
  double epsilon;
  static constexpr auto names = fw::names("weight", "epsilon");

  struct Trace {
    Eigen::Matrix<S, Dynamic, 1> inverse;  ///< 1/√(mean(x²) + ε) of every token
    Index trained = 0;  ///< tokens of the last pass if it was a train pass, else 0
  };

  /// For x of d rows: w is 1. Throws std::invalid_argument for d < 1 or eps ≤ 0.
  explicit RmsNorm(Index d, double eps = 1e-5) : epsilon(eps) {
    detail::check_size<Dynamic>(name, "d", d);
    detail::check_above_zero(name, "epsilon", eps);
    weight.setOnes(d);
  }

  Index inputs() const { return weight.size(); }
  Index outputs() const { return weight.size(); }
  State initial_state() const { return {}; }

  void forward(State&, Input<S> x, Output<S> y, Trace& trace, Pass pass = Pass::infer) const {
    detail::check_forward(*this, x, y);
    trace.inverse.resize(x.cols());
    const S n = S(static_cast<double>(inputs()));
    for (Index t = 0; t < x.cols(); ++t) {
      using std::sqrt;
      const S inverse = S(1) / sqrt(x.col(t).array().square().sum() / n + S(epsilon));
      y.col(t).array() = x.col(t).array() * inverse * weight.array();
      trace.inverse[t] = inverse;
    }
    trace.trained = pass.trains() ? x.cols() : 0;
  }

  /// With x̂ = x/√(mean(x²) + ε) and g = w ⊙ dy: dx = (g − x̂ mean(g ⊙ x̂)) / √(mean(x²) + ε).
  void backward(Input<S> x, Trace& trace, Input<S> dy, Output<S> dx, RmsNorm& grad) const {
    detail::check_backward(*this, x, trace.trained, dy, dx, grad);
    const S n = S(static_cast<double>(inputs()));
    for (Index t = 0; t < x.cols(); ++t) {
      const S inverse = trace.inverse[t];
      const auto normalised = x.col(t).array() * inverse;
      const auto dyt = dy.col(t).array();
      const S mean_gx = (weight.array() * dyt * normalised).sum() / n;
      grad.weight.array() += dyt * normalised;
      dx.col(t).array() = (weight.array() * dyt - normalised * mean_gx) * inverse;
    }
  }
};

}  // namespace fw
