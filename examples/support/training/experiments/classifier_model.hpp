#pragma once

#include <any>

#include "tasks/sequence_batch.hpp"
#include "training/score.hpp"
#include "training/trained_model.hpp"

/// A model that chooses one of ten classes for every sequence of a batch.
class ClassifierModel : public TrainedModel {
 public:
  /// The mean loss in nats, and how many classes are right. With a gradient, a model of the same
  /// type, adds that of the loss. `buffers` is empty in the first call, and is used again in the
  /// next ones.
  virtual Score run(const SequenceBatch& batch, std::span<const int> targets, std::any& buffers,
                    TrainedModel* gradient = nullptr) const = 0;
};
