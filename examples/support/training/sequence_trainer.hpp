#pragma once

#include <functional>
#include <stdexcept>

#include "training/sequence_model.hpp"

/// Trains a model on sequences, each computed by itself.
class SequenceTrainer {
 public:
  /// Sequence i of a batch. Is called from several threads.
  using Draw = std::function<TaskSequence(long i)>;

  explicit SequenceTrainer(SequenceModel& model, const fw::AdamWOptions& options = {},
                           int shards = 4)
      : model_(model), trainer_(model, options, shards) {}

  /// The gradient of the mean loss; stays until the next call.
  Score compute_gradient(long batch, const Draw& draw) {
    return trainer_.run_with_gradient(batch, job(batch, draw, fw::Pass::train));
  }
  TrainedModel& gradient() { return trainer_.gradient(); }
  void step(double learning_rate) { trainer_.step(learning_rate); }

  Score evaluate(long count, const Draw& draw) {
    return trainer_.run(count, job(count, draw, fw::Pass::infer));
  }

  AdamW& optimiser() { return trainer_.optimiser(); }

 private:
  Trainer::Job job(long batch, const Draw& draw, fw::Pass pass) const {
    return [this, batch, &draw, pass](Trainer::Shard& shard, long i) {
      return model_.run(draw(i), batch, pass, shard.buffers, *shard.gradient);
    };
  }

  SequenceModel& model_;
  Trainer trainer_;
};
