#pragma once

#include <string>

#include "training/experiments/classifier_experiment.hpp"

/// \file
/// The errors of an experiment beside those of Ba et al. 2016: tables, CSV and picture.

/// Trains all models, prints `heading` and the tables below it, and leaves CSV and picture.
/// Returns the exit code: 1 if `target` is not 0 and the fast weights' error is above `target` %.
int run_experiment(const Experiment& e, const MakeClassifier& make,
                   const Splits<ClassifiedSequences>& data, const std::string& heading,
                   double target);
