#pragma once

#include <Eigen/Core>
#include <span>

/// Results of a model for some examples of a batch.
struct Score {
  double loss = 0;  ///< in nats: the examples' part of the mean over the batch
  long examples = 0;
  long answers = 0;   ///< expected
  long right = 0;     ///< of these
  long complete = 0;  ///< examples all of whose answers are right

  double accuracy() const { return static_cast<double>(right) / static_cast<double>(answers); }
  double complete_share() const {
    return static_cast<double>(complete) / static_cast<double>(examples);
  }
  Score& operator+=(const Score& other) {
    loss += other.loss;
    examples += other.examples;
    answers += other.answers;
    right += other.right;
    complete += other.complete;
    return *this;
  }
};

/// The number of columns of the logits whose largest entry is at the target. Negative targets are
/// of tokens without an answer.
template <class Logits> long count_right(const Logits& logits, std::span<const int> targets) {
  long right = 0;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (targets[i] < 0) continue;
    int best = 0;
    logits.col(static_cast<Eigen::Index>(i)).maxCoeff(&best);
    right += best == targets[i];
  }
  return right;
}
