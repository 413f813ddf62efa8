#pragma once

#include <cmath>
#include <fastweights/core/finite.hpp>
#include <fastweights/layers/layer.hpp>
#include <fastweights/layers/symbols.hpp>
#include <limits>
#include <optional>
#include <span>

/// \file
/// Losses over the tokens of a sequence or of several, averaged, with their gradients.

namespace fw::inline FASTWEIGHTS_ABI {

namespace detail {

// Returns −ln softmax(logits)[target] of one token and stores softmax(logits) in `softmax`.
// Subtracts the largest logit first, so that exp does not overflow.
template <class Logits, class Softmax>
auto token_cross_entropy(const Logits& logits, Index target, Softmax&& softmax) {
  using S = typename Logits::Scalar;
  using std::log;
  const S largest = S(logits.real().maxCoeff());
  const S target_logit = logits[target] - largest;  // read first: `softmax` may alias `logits`
  softmax.array() = (logits.array() - largest).exp();
  const S sum = softmax.sum();
  softmax /= sum;
  return S(log(sum) - target_logit);
}

}  // namespace detail

/// The tokens that count in a loss, and their weights.
struct LossOptions {
  std::optional<int> ignore_index = {};  ///< tokens with this target do not count
  /// One per token, at least 0, such as a mask. Empty: all 1.
  std::span<const double> weights = {};
  /// Divisor of the sum, above 0; 0: the sum of the weights that count. For a part of a
  /// batch: that sum over the whole batch.
  double divisor = 0;
};

namespace detail {

inline double loss_weight(const LossOptions& o, std::size_t t, int target) {
  if (o.ignore_index == target) return 0;
  return o.weights.empty() ? 1 : o.weights[t];
}

// Checks the arguments; gives the sum of the weights that count, or the divisor. Factors of losses
// are at most `largest`.
inline double check_cross_entropy(Symbols targets, Index symbols, const LossOptions& o,
                                  double largest) {
  const auto steps = targets.size();
  if (!o.weights.empty() && o.weights.size() != steps)
    throw_mismatch("cross_entropy", "weights", static_cast<Index>(o.weights.size()), "numbers",
                   static_cast<Index>(steps), "the targets");
  double sum = 0, most = 0;
  for (std::size_t t = 0; t < steps; ++t) {
    const double weight = o.weights.empty() ? 1 : o.weights[t];
    if (!(weight >= 0) || !is_finite(weight))
      throw_invalid({"cross_entropy: weight ", std::to_string(t), " is ", number_text(weight),
                     ", expected a finite number of at least 0"});
    if (o.ignore_index == targets[t]) continue;
    check_symbol("cross_entropy", t, targets[t], symbols);
    sum += weight;
    most = std::max(most, weight);
  }
  if (!(o.divisor >= 0) || !is_finite(o.divisor))
    throw_invalid({"cross_entropy: divisor is ", number_text(o.divisor),
                   ", expected a finite number above 0, or 0"});
  const double divisor = o.divisor > 0 ? o.divisor : sum;
  if (!is_finite(divisor) || (most > 0 && !(most / divisor <= largest)))
    throw_invalid({"cross_entropy: a weight of ", number_text(most), " over ", number_text(divisor),
                   " is out of range"});
  return divisor;
}

}  // namespace detail

/// The mean over the tokens of −ln softmax(logits)[target], in nats, weighted by w_t:
///
///     Σ_t w_t (−ln softmax(logits_t)[target_t]) / Σ_t w_t
///
/// `dlogits` becomes the gradient, w_t (softmax(logits_t) − onehot(target_t)) / Σ w, and may be
/// `logits` itself. Tokens that do not count have gradient 0; the loss is 0 if none counts.
///
/// Shapes: logits and dlogits symbols×T, targets T. Throws std::invalid_argument if a size does not
/// fit, or if a target or an option is out of range.
template <class Logits, class Dlogits>
typename Logits::Scalar cross_entropy(const Eigen::MatrixBase<Logits>& logits, Symbols targets,
                                      Eigen::MatrixBase<Dlogits>& dlogits,
                                      const LossOptions& o = {}) {
  using S = typename Logits::Scalar;
  const Index steps = static_cast<Index>(targets.size());
  detail::check_not_empty("cross_entropy", "targets", steps);
  detail::check_extent("cross_entropy", "logits", logits, logits.rows(), steps);
  detail::check_extent("cross_entropy", "dlogits", dlogits, logits.rows(), steps);
  using Real = typename Eigen::NumTraits<S>::Real;
  const double divisor = detail::check_cross_entropy(
      targets, logits.rows(), o, static_cast<double>(std::numeric_limits<Real>::max()));
  S total = S(0);
  for (Index t = 0; t < steps; ++t) {
    const Index target = targets[static_cast<std::size_t>(t)];
    const double weight = detail::loss_weight(o, static_cast<std::size_t>(t), int(target));
    if (weight == 0) {
      dlogits.col(t).setZero();
      continue;
    }
    const S factor = S(weight / divisor);
    total += factor * detail::token_cross_entropy(logits.col(t), target, dlogits.col(t));
    dlogits(target, t) -= S(1);
    dlogits.col(t) *= factor;
  }
  return total;
}

/// The mean over the tokens of ½ ‖y − target‖². `dy` becomes the gradient, (y − target) / T.
template <class Y, class Target, class Dy>
typename Y::Scalar squared_error(const Eigen::MatrixBase<Y>& y,
                                 const Eigen::MatrixBase<Target>& target,
                                 Eigen::MatrixBase<Dy>& dy) {
  using S = typename Y::Scalar;
  detail::check_not_empty("squared_error", "y", y.cols());
  detail::check_extent("squared_error", "target", target, y.rows(), y.cols());
  detail::check_extent("squared_error", "dy", dy, y.rows(), y.cols());
  const S inverse_count = S(1) / S(static_cast<double>(y.cols()));
  dy = y - target;
  const S total = dy.array().square().sum() * S(0.5);
  dy *= inverse_count;
  return total * inverse_count;
}

}  // namespace fw
