#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "training/experiments/classifier_model.hpp"

/// \file
/// Trains a classifier in one thread by Adam. The learning rate rises for some steps and then falls
/// linearly to 1 %. The parameters with the best validation error are kept.

struct TrainingPlan {
  long steps = 20000, batch = 128, warmup = 200, evaluations = 40;
  double rate = 1e-3, clip = 5;
  std::uint64_t seed = 1;
};

struct CurvePoint {
  long step = 0;
  double loss = 0, validation = 0;  ///< in nats, mean since the last point; share of errors
};

struct TrainingResult {
  long parameters = 0;
  long steps = 0;                   ///< fewer than planned where it diverged
  double validation = 1, test = 1;  ///< shares of errors at the best validation error
  double seconds = 0;               ///< in training steps
  std::vector<CurvePoint> curve;
};

/// Calls report() after every step. The model then has the parameters of the last step.
TrainingResult train_classifier(ClassifierModel& model, const Splits<ClassifiedSequences>& data,
                                const TrainingPlan& plan, const std::function<void()>& report);
