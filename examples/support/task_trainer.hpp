#pragma once

#include <fastweights/fastweights.hpp>
#include <functional>

#include "task_sequence.hpp"
#include "threads.hpp"

/// Trains a language model to answer where it is asked. The batch is cut into shards that may run
/// at the same time, each with gradients of its own, summed up in order: the result is the same for
/// any number of threads.
template <class Model> class TaskTrainer {
  using Scalar = typename Model::Scalar;

 public:
  /// Sequence `index` of a seed.
  using Draw = std::function<TaskSequence(std::uint64_t seed, std::uint64_t index)>;

  TaskTrainer(const Model& model, Draw draw, int shards = 4)
      : draw_(std::move(draw)), shards_(static_cast<std::size_t>(shards), Shard(model)) {}

  struct Score {
    double loss = 0;      ///< in nats an answer, the mean over sequences
    double answers = 0;   ///< the share that is right
    double complete = 0;  ///< the share of sequences all of whose answers are right
  };

  /// The gradient of the mean loss over sequences first … first + batch − 1 of a seed.
  Score gradient(const Model& model, std::uint64_t seed, long first, long batch) {
    for (Shard& shard : shards_) fw::set_zero_parameters(shard.gradient);
    const Score score = run(model, seed, first, batch, fw::Pass::train);
    for (std::size_t s = 1; s < shards_.size(); ++s)
      fw::add_parameters(shards_[0].gradient, shards_[s].gradient);
    return score;
  }
  const Model& gradient() const { return shards_[0].gradient; }

  Score evaluate(const Model& model, std::uint64_t seed, long count) {
    return run(model, seed, 0, count, fw::Pass::infer);
  }

 private:
  struct Shard {
    explicit Shard(const Model& model) : gradient(model) {}
    Model gradient;
    typename Model::Trace trace;
    Eigen::MatrixX<Scalar> logits, asked;
    std::vector<int> targets, columns;  // of the answers asked for
    double loss = 0;
    long answers = 0, right = 0, complete = 0;
  };

  Score run(const Model& model, std::uint64_t seed, long first, long count, fw::Pass pass) {
    run_jobs(shards_.size(), threads_or_all(), [&](std::size_t s) {
      Shard& shard = shards_[s];
      shard.loss = 0;
      shard.answers = shard.right = shard.complete = 0;
      for (auto i = static_cast<long>(s); i < count; i += static_cast<long>(shards_.size()))
        run_one(model, shard, draw_(seed, static_cast<std::uint64_t>(first + i)), count, pass);
    });
    Score score;
    double answers = 0, right = 0;
    for (const Shard& shard : shards_) {
      score.loss += shard.loss / static_cast<double>(count);
      score.complete += static_cast<double>(shard.complete) / static_cast<double>(count);
      answers += static_cast<double>(shard.answers);
      right += static_cast<double>(shard.right);
    }
    score.answers = right / answers;
    return score;
  }

  void run_one(const Model& model, Shard& shard, const TaskSequence& sequence, long count,
               fw::Pass pass) {
    shard.logits.resize(model.symbols(), static_cast<fw::Index>(sequence.input.size()));
    auto state = model.initial_state();
    model.forward(state, sequence.input, shard.logits, shard.trace, pass);
    gather(shard, sequence);
    count_right(shard);
    shard.loss += fw::cross_entropy(shard.asked, shard.targets, shard.asked);
    if (pass == fw::Pass::infer) return;
    shard.logits.setZero();
    for (std::size_t i = 0; i < shard.columns.size(); ++i)
      shard.logits.col(shard.columns[i]) =
          shard.asked.col(static_cast<fw::Index>(i)) / static_cast<Scalar>(count);
    model.backward(sequence.input, shard.trace, shard.logits, shard.gradient);
  }

  // The logits where an answer is asked for.
  static void gather(Shard& shard, const TaskSequence& sequence) {
    shard.targets.clear();
    shard.columns.clear();
    for (std::size_t t = 0; t < sequence.targets.size(); ++t)
      if (sequence.targets[t] != no_answer) {
        shard.targets.push_back(sequence.targets[t]);
        shard.columns.push_back(static_cast<int>(t));
      }
    shard.asked.resize(shard.logits.rows(), static_cast<fw::Index>(shard.columns.size()));
    for (std::size_t i = 0; i < shard.columns.size(); ++i)
      shard.asked.col(static_cast<fw::Index>(i)) = shard.logits.col(shard.columns[i]);
  }

  static void count_right(Shard& shard) {
    long right = 0;
    for (std::size_t i = 0; i < shard.targets.size(); ++i) {
      int best = 0;
      shard.asked.col(static_cast<fw::Index>(i)).maxCoeff(&best);
      right += best == shard.targets[i];
    }
    const auto asked = static_cast<long>(shard.targets.size());
    shard.answers += asked;
    shard.right += right;
    shard.complete += right == asked;
  }

  Draw draw_;
  std::vector<Shard> shards_;
};
