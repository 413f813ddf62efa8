#pragma once

#include <any>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "training/adamw.hpp"

/// Sums over the examples of a batch.
struct Score {
  double loss = 0;  ///< in nats; of a whole batch the mean over its examples
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

/// How many columns of the logits have their largest entry at the target.
template <class Logits> long count_right(const Logits& logits, std::span<const int> targets) {
  long right = 0;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    int best = 0;
    logits.col(static_cast<Eigen::Index>(i)).maxCoeff(&best);
    right += best == targets[i];
  }
  return right;
}

/// The trainer of all examples: computes the gradient of a batch, and steps along it by AdamW. The
/// batch is split into shards that may run at the same time. Each shard has its own gradient, and
/// these are added in order: the result is the same for any number of threads.
class Trainer {
 public:
  /// The gradient and buffers of one thread.
  struct Shard {
    std::unique_ptr<TrainedModel> gradient;
    std::any buffers;
  };
  /// Computes example i of a batch, and in a train pass adds its gradient to that of the shard.
  using Job = std::function<Score(Shard& shard, long i)>;

  Trainer(TrainedModel& model, const fw::AdamWOptions& options, int shards = 4);

  /// Runs `count` examples; shard s takes examples s, s + shards, ….
  Score run(long count, const Job& job);

  /// The same, where the jobs add gradients. The sum stays until the next call.
  Score run_with_gradient(long count, const Job& job);

  /// One step of AdamW along the gradient.
  void step(double learning_rate);

  TrainedModel& model() { return model_; }
  TrainedModel& gradient() { return *shards_[0].gradient; }
  AdamW& optimiser() { return optimiser_; }

 private:
  TrainedModel& model_;
  std::vector<Shard> shards_;
  AdamW optimiser_;
};
