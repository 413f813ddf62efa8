#pragma once

#include <fastweights/layers/layer.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "training/experiments/classifier_trainer.hpp"

/// \file
/// Trains several models of several sizes on one task, each in one thread. Every model is trained
/// at every learning rate (the fast weights also at every η). The run with the best validation
/// error counts.

/// Error in % of a model by its title and units.
using PublishedErrors = std::map<std::string, std::map<fw::Index, double>>;

struct Experiment {
  std::string name, output;
  std::vector<std::string> models;
  std::vector<fw::Index> units;
  std::vector<double> rates = {3e-3, 1e-3};
  TrainingPlan plan;
  std::map<fw::Index, long> steps;   ///< by units, where other than the plan's
  std::vector<double> etas = {0.5};  ///< of the fast weights, to choose from
  int threads = 0;
  PublishedErrors published;
  std::string source = "paper";  ///< of the published errors, in the picture
};

struct Run {
  std::string kind;
  fw::Index units = 0;
  double rate = 0, eta = 0;
  long steps = 0;
  TrainingResult result;
};

/// All runs of an experiment, by model, units, η and rate.
std::vector<Run> planned_runs(const Experiment& e);

/// The numbers of the runs, the longest trainings first, as the last ones may run alone.
std::vector<std::size_t> longest_first(const std::vector<Run>& runs);

/// Makes the model of a run, its parameters drawn from a seed.
using MakeClassifier =
    std::function<std::unique_ptr<ClassifierModel>(const Run& run, std::uint64_t seed)>;

/// The runs, trained. The results do not depend on the number of threads.
std::vector<Run> train_all(const Experiment& e, const MakeClassifier& make,
                           const Splits<ClassifiedSequences>& data);

/// The run of a model and size with the best validation error.
const Run& best_run(const std::vector<Run>& runs, const std::string& kind, fw::Index units);
