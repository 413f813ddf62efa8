#pragma once

#include <fastweights/training/trainer.hpp>
#include <functional>

#include "training/any_model.hpp"
#include "training/processes.hpp"
#include "training/sequence_model.hpp"

/// Trains a model on batches of sequences with fw::Trainer. Shard s of all shards takes sequences
/// s, s + shards, … of a batch. With several processes each has some of the shards.
class SequenceTrainer {
 public:
  /// Sequence i of a batch. Is called from several threads.
  using Draw = std::function<TaskSequence(long i)>;
  using Step = fw::TrainingStep;

  explicit SequenceTrainer(SequenceModel& model, const fw::AdamWOptions& options = {},
                           fw::Index shards = 4);
  /// Shares the shards with the other processes, which call this together. `processes` must outlive
  /// the trainer.
  void join(const Processes& processes);

  /// Steps until the optimiser has done `steps`, by rate(step) and batches of draw(step), which is
  /// called from several threads. Then calls after(step, its score).
  void train(long steps, long batch, const std::function<double(long long)>& rate,
             const std::function<Draw(long step)>& draw,
             const std::function<void(const Step&, const Score&)>& after);

  SequenceTrainer(const SequenceTrainer&) = delete;
  SequenceTrainer& operator=(const SequenceTrainer&) = delete;

  /// The gradient of the mean loss, of this process's part; stays until the next call.
  Score compute_gradient(long batch, const Draw& draw);
  TrainedModel& gradient() { return trainer_.gradient().model(); }

  Score evaluate(long count, const Draw& draw);

  /// As fw::io::save_training and load_training take them.
  AnyModel<float>& model() { return model_; }
  fw::AdamW<AnyModel<float>>& optimiser() { return trainer_.optimiser(); }

 private:
  Score run(fw::Index shard, long batch, const Draw& draw, TrainedModel* gradient);
  Score total() const;

  const SequenceModel& network_;
  AnyModel<float> model_;  // refers to it
  fw::Trainer<AnyModel<float>> trainer_;
  std::vector<std::any> buffers_;  // one a shard
  std::vector<Score> scores_;      // of the last batch, one a shard
  const Processes* processes_ = nullptr;
};
