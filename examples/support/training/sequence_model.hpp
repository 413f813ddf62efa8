#pragma once

#include <any>
#include <fastweights/layers/layer.hpp>

#include "tasks/task_sequence.hpp"
#include "training/trainer.hpp"

/// A model that reads tokens and answers at some of them.
class SequenceModel : public TrainedModel {
 public:
  /// The mean loss over the answers of one sequence in nats, and how many of them are right. A
  /// train pass adds the gradient of loss / `batch` to `gradient`, a model of the same type.
  /// `buffers` is empty in the first call, and is used again in the next ones.
  virtual Score run(const TaskSequence& sequence, long batch, fw::Pass pass, std::any& buffers,
                    TrainedModel& gradient) const = 0;
};
