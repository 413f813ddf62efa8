#pragma once

#include <fastweights/training/adamw.hpp>
#include <memory>

#include "training/trained_model.hpp"

/// fw::AdamW for a model of any type whose parameters are of float.
class AdamW {
 public:
  AdamW(const TrainedModel& model, const fw::AdamWOptions& options);

  /// One step. Throws std::runtime_error where the gradient is not finite; nothing is changed then.
  void step(TrainedModel& model, TrainedModel& gradient, double learning_rate);

  std::unique_ptr<TrainedModel> first, second;  ///< the two moments
  long long steps = 0;

 private:
  fw::AdamWOptions options_;
};
