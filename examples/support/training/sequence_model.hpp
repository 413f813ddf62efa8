#pragma once

#include <any>
#include <span>

#include "tasks/task_sequence.hpp"
#include "training/score.hpp"
#include "training/trained_model.hpp"

/// A model that reads tokens and answers at some of them.
class SequenceModel : public TrainedModel {
 public:
  /// Runs some sequences of a batch of `batch`. The loss of a sequence is the mean over its
  /// answers, and that of the batch the mean over its sequences. With a gradient, a model of the
  /// same type, adds these sequences' part of it. `buffers` is empty in the first call, and is used
  /// again in the next ones.
  virtual Score run(std::span<const TaskSequence> sequences, long batch, std::any& buffers,
                    TrainedModel* gradient = nullptr) const = 0;
};
