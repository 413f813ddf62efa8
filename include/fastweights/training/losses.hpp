#pragma once

#include <cmath>
#include <fastweights/layers/projections/embedding.hpp>

/// \file
/// Losses over one sequence, averaged over its tokens, with their gradients. For a batch, average
/// the values and divide the gradients by the number of sequences.

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

/// The mean over the tokens of −ln softmax(logits)[target], in nats. `dlogits` becomes the
/// gradient, (softmax(logits) − onehot(target)) / T, and may be `logits` itself.
///
/// Shapes: logits and dlogits symbols×T, targets T. Throws std::invalid_argument if a size does not
/// fit or a target is out of range.
template <class Logits, class Dlogits>
typename Logits::Scalar cross_entropy(const Eigen::MatrixBase<Logits>& logits, Symbols targets,
                                      Eigen::MatrixBase<Dlogits>& dlogits) {
  using S = typename Logits::Scalar;
  const Index steps = static_cast<Index>(targets.size());
  detail::check_not_empty("cross_entropy", "targets", steps);
  detail::check_symbols("cross_entropy", targets, logits.rows());
  detail::check_extent("cross_entropy", "logits", logits, logits.rows(), steps);
  detail::check_extent("cross_entropy", "dlogits", dlogits, logits.rows(), steps);
  const S inverse_count = S(1) / S(static_cast<double>(steps));
  S total = S(0);
  for (Index t = 0; t < steps; ++t) {
    const Index target = targets[static_cast<std::size_t>(t)];
    total += detail::token_cross_entropy(logits.col(t), target, dlogits.col(t));
    dlogits(target, t) -= S(1);
    dlogits.col(t) *= inverse_count;
  }
  return total * inverse_count;
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
