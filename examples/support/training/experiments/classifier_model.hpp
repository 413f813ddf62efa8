#pragma once

#include <any>
#include <fastweights/layers/layer.hpp>

#include "tasks/sequence_batch.hpp"
#include "training/trainer.hpp"

/// A model that chooses one of ten classes for every sequence of a batch.
class ClassifierModel : public TrainedModel {
 public:
  /// The mean loss in nats, and how many classes are right. A train pass adds the gradient of the
  /// loss to `gradient`, a model of the same type. `buffers` is empty in the first call, and is
  /// used again in the next ones.
  virtual Score run(const SequenceBatch& batch, std::span<const int> targets, fw::Pass pass,
                    std::any& buffers, TrainedModel& gradient) const = 0;
};
