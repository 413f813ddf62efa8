#pragma once

#include <cmath>
#include <fastweights/continuous/basis.hpp>
#include <fastweights/core/errors.hpp>
#include <fastweights/core/record.hpp>
#include <fastweights/math/random.hpp>
#include <fastweights/math/softmax.hpp>
#include <stdexcept>
#include <string>

/// \file
/// The components of a density are computed from the scores s_n = K_n·q/√d of one query: a mixture
/// of C components, each with a weight, a mean and a variance. LearnedComponents and
/// MatchedComponent compute them. Both are records; their Eigen members are parameters.

namespace fw::inline FASTWEIGHTS_ABI {

/// The components of a mixture. At most 8, so that they need no heap.
template <class S> struct Mixture {
  /// C is at most this, so that a mixture needs no heap.
  static constexpr int max_components = 8;
  using Array = Eigen::Array<S, Dynamic, 1, Eigen::ColMajor, max_components, 1>;
  Array weight, mean, variance;  ///< one entry per component; the weights sum to 1
  static constexpr auto names = fw::names("weight", "mean", "variance");

  /// `components` components, to be set: weights 1, means and variances 0.
  explicit Mixture(Index components = 1)
      : weight(Array::Constant(components, S(1))),
        mean(Array::Zero(components)),
        variance(Array::Zero(components)) {}
};

/// Learned affine maps, which all heads and queries share.
///
///     μ = sigmoid(w_μ·s + b_μ),   v = max(softplus(w_v·s + b_v), floor)
///     weight = softmax(W s + b)
///
/// One row per component. With one component the weight is 1 and has no parameters. A variance at
/// the floor has no gradient. Martins et al. 2022, arXiv 2109.00301, section 3.2 (without biases
/// there).
template <class S> struct LearnedComponents {
  using Scalar = S;
  using Matrix = Eigen::Matrix<S, Dynamic, Dynamic>;
  using Vector = Eigen::Matrix<S, Dynamic, 1>;

  Matrix mean_weight;      ///< w_μ, C×N
  Vector mean_bias;        ///< b_μ, C entries or none
  Matrix variance_weight;  ///< w_v, C×N
  Vector variance_bias;    ///< b_v, C entries or none
  /// W, C×N; without rows if C is 1.
  Matrix mixing_weight;
  Vector mixing_bias;  ///< b, C entries; none if C is 1
  double floor;        ///< the smallest variance
  static constexpr auto names = fw::names("mean_weight", "mean_bias", "variance_weight",
                                          "variance_bias", "mixing_weight", "mixing_bias", "floor");

  /// Parameters are zero until initialised or loaded. A floor of 0 is valid only for GaussianShape
  /// on Domain::line; other densities divide by a mass that is 0 for a variance of 0. Throws
  /// std::invalid_argument for sizes out of range.
  explicit LearnedComponents(Index functions, Index components = 1, bool bias = true,
                             double variance_floor = 1e-6);

  /// C, the number of components.
  Index size() const { return mean_weight.rows(); }
  /// N, the functions of the basis.
  Index functions() const { return mean_weight.cols(); }
  template <class T> LearnedComponents<T> cast() const;

  /// Weights are uniform in ±1/√N, as in PyTorch. Biases spread the means of the components evenly
  /// and give variances near 1, so that every query initially attends to the whole signal.
  template <class Generator> void initialise(Generator& random);

  /// The components for the scores of one query.
  template <class Basis, class Scores>
  Mixture<S> mixture_of(const Basis&, const Scores& scores) const {
    Mixture<S> mixture(size());
    for (Index c = 0; c < size(); ++c) {
      mixture.mean[c] = Sigmoid{}.value(S(logit(mean_weight, mean_bias, c, scores)));
      mixture.variance[c] = detail::larger(
          detail::softplus(S(logit(variance_weight, variance_bias, c, scores))), S(floor));
      if (size() > 1) mixture.weight[c] = logit(mixing_weight, mixing_bias, c, scores);
    }
    if (size() > 1) detail::softmax_in_place(mixture.weight);
    return mixture;
  }

  /// Overwrites dscores and `d`, accumulates grad.
  template <class Basis, class Scores, class DScores>
  void vjp(const Basis&, const Scores& scores, const Mixture<S>& mixture, Mixture<S>& d,
           DScores&& dscores, LearnedComponents& grad) const {
    dscores.setZero();
    if (size() > 1) detail::softmax_vjp_in_place(mixture.weight, d.weight);
    for (Index c = 0; c < size(); ++c) {
      const S raw = logit(variance_weight, variance_bias, c, scores);
      const bool floored = !(detail::real_part(detail::softplus(raw)) > floor);
      const S dmean = d.mean[c] * mixture.mean[c] * (S(1) - mixture.mean[c]);
      const S dvariance = floored ? S(0) : S(d.variance[c] * Sigmoid{}.value(raw));
      add(mean_weight, c, dmean, scores, dscores, grad.mean_weight, grad.mean_bias);
      add(variance_weight, c, dvariance, scores, dscores, grad.variance_weight, grad.variance_bias);
      if (size() > 1)
        add(mixing_weight, c, d.weight[c], scores, dscores, grad.mixing_weight, grad.mixing_bias);
    }
  }

 private:
  template <class Scores>
  static S logit(const Matrix& weight, const Vector& bias, Index c, const Scores& scores) {
    const S sum = weighted(weight, c, scores);
    return bias.size() > 0 ? sum + bias[c] : sum;
  }
  // A single row is contiguous and vectorises; one of several rows does not.
  template <class Weight, class F> static auto with_row(Weight& weight, Index c, const F& f) {
    using Row = std::conditional_t<std::is_const_v<Weight>, const Vector, Vector>;
    if (weight.rows() == 1) return f(Eigen::Map<Row>(weight.data(), weight.size()));
    return f(weight.row(c).transpose());
  }
  template <class Scores> static S weighted(const Matrix& weight, Index c, const Scores& scores) {
    return with_row(weight, c, [&](const auto& row) { return S(row.cwiseProduct(scores).sum()); });
  }
  // Accumulates the gradients of scores, weight and bias, given the gradient of a logit.
  template <class Scores, class DScores>
  static void add(const Matrix& weight, Index c, const S& dlogit, const Scores& scores,
                  DScores& dscores, Matrix& dweight, Vector& dbias) {
    with_row(weight, c, [&](const auto& row) { dscores += dlogit * row; });
    with_row(dweight, c, [&](auto row) { row += dlogit * scores; });
    if (dbias.size() > 0) dbias[c] += dlogit;
  }
};

/// Mean and variance of a mixture of the basis functions, weighted by a discrete softmax over the
/// scores. It has no parameters.
///
///     a = softmax(s),   μ = Σ_n a_n μ_n,   v = max(Σ_n a_n (μ_n² + σ_n²) − μ², floor)
///
/// Martins et al. 2020, arXiv 2006.07214, section 4.
template <class S> struct MatchedComponent {
  using Scalar = S;
  using Array = Eigen::Array<S, Dynamic, 1>;

  double floor = 0;  ///< the smallest variance
  static constexpr auto names = fw::names("floor");

  template <class T> MatchedComponent<T> cast() const { return {floor}; }

  /// The component for the scores of one query.
  template <class Basis, class Scores>
  Mixture<S> mixture_of(const Basis& basis, const Scores& scores) const {
    using std::exp;
    S top = scores[0];
    for (Index n = 1; n < scores.size(); ++n) top = detail::larger(top, S(scores[n]));
    const auto weights = (scores.array() - S(detail::real_part(top))).exp();
    const S total = weights.sum();
    Mixture<S> mixture;
    mixture.mean[0] = (weights * basis.means()).sum() / total;
    // Central moments avoid the difference of nearly equal squares.
    const auto spread = (basis.means() - mixture.mean[0]).square() + basis.variances();
    mixture.variance[0] = detail::larger(S((weights * spread).sum() / total), S(floor));
    return mixture;
  }

  /// Overwrites dscores with the gradient of the scores, given the gradient `d` of the mixture.
  template <class Basis, class Scores, class DScores>
  void vjp(const Basis& basis, const Scores& scores, const Mixture<S>& mixture, Mixture<S>& d,
           DScores&& dscores, MatchedComponent&) const {
    dscores = scores;
    detail::softmax_in_place(dscores);
    const auto offset = basis.means() - mixture.mean[0];
    const bool floored = !(detail::real_part(mixture.variance[0]) > floor);
    const S dvariance = floored ? S(0) : d.variance[0];
    const auto da = d.mean[0] * offset + dvariance * (offset.square() + basis.variances());
    const S mean = (dscores.array() * da).sum();
    dscores.array() *= da - mean;
  }
};

template <class S>
LearnedComponents<S>::LearnedComponents(Index functions, Index components, bool bias,
                                        double variance_floor)
    : floor(variance_floor) {
  if (functions < 1 || components < 1 || components > Mixture<S>::max_components ||
      !(variance_floor >= 0))
    detail::throw_invalid({"LearnedComponents: ", std::to_string(functions), " functions, ",
                           std::to_string(components), " components, floor ",
                           std::to_string(variance_floor),
                           ", expected at least 1, 1 to 8, at least 0"});
  const Index mixing = components > 1 ? components : 0;
  mean_weight.setZero(components, functions);
  variance_weight.setZero(components, functions);
  mixing_weight.setZero(mixing, functions);
  mean_bias.setZero(bias ? components : 0);
  variance_bias.setZero(bias ? components : 0);
  mixing_bias.setZero(bias ? mixing : 0);
}

template <class S> template <class T> LearnedComponents<T> LearnedComponents<S>::cast() const {
  LearnedComponents<T> to(mean_weight.cols(), size(), mean_bias.size() > 0, floor);
  to.mean_weight = mean_weight.template cast<T>();
  to.mean_bias = mean_bias.template cast<T>();
  to.variance_weight = variance_weight.template cast<T>();
  to.variance_bias = variance_bias.template cast<T>();
  to.mixing_weight = mixing_weight.template cast<T>();
  to.mixing_bias = mixing_bias.template cast<T>();
  return to;
}

template <class S>
template <class Generator>
void LearnedComponents<S>::initialise(Generator& random) {
  const double bound = 1 / std::sqrt(static_cast<double>(mean_weight.cols()));
  fill_uniform(random, bound, mean_weight, variance_weight, mixing_weight);
  for (Index c = 0; c < mean_bias.size(); ++c) {
    const double mean = (static_cast<double>(c) + 0.5) / static_cast<double>(size());
    mean_bias[c] = S(std::log(mean / (1 - mean)));
    variance_bias[c] = S(0.5413248546129181);  // softplus⁻¹(1)
  }
}

}  // namespace fw
