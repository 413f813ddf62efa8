#pragma once

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "classifier_trainer.hpp"
#include "denormals.hpp"
#include "progress.hpp"
#include "recurrent_models.hpp"
#include "threads.hpp"

/// \file
/// Trains several models of several sizes on one task, each in a thread of its own. Every model is
/// trained at every learning rate (the fast weights at every η too), and the run that is best on
/// the validation set counts.

/// Error in % of a model by its title and units.
using PublishedErrors = std::map<std::string, std::map<fw::Index, double>>;

struct Experiment {
  std::string name, output;
  std::vector<std::string> models;
  std::vector<fw::Index> units;
  std::vector<double> rates = {3e-3, 1e-3};
  TrainingPlan plan;
  std::map<fw::Index, long> steps;   ///< of nets of so many units, where other than the plan's
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
inline std::vector<Run> planned_runs(const Experiment& e) {
  std::vector<Run> runs;
  for (const std::string& kind : e.models)
    for (const fw::Index units : e.units)
      for (const double eta : kind == "fast" ? e.etas : std::vector<double>{0})
        for (const double rate : e.rates) {
          const auto own = e.steps.find(units);
          const long steps = own == e.steps.end() ? e.plan.steps : own->second;
          runs.push_back({kind, units, rate, eta, steps, {}});
        }
  return runs;
}

/// The numbers of the runs, those first that take longest, as the last ones may run alone.
inline std::vector<std::size_t> longest_first(const std::vector<Run>& runs) {
  std::vector<std::size_t> order(runs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t i) {
    const Run& run = runs[i];
    return run.steps * run.units * (run.kind == "lstm" || run.kind == "delta" ? 3 : 1);
  });
  return order;
}

/// The runs, trained. What comes out does not depend on the number of threads.
template <class Encoder, class Data>
std::vector<Run> train_all(const Experiment& e, const Encoder& encoder, const Splits<Data>& data) {
  std::vector<Run> runs = planned_runs(e);
  const std::vector<std::size_t> order = longest_first(runs);
  long total = 0;
  for (const Run& run : runs) total += run.steps;
  Progress progress(e.name, total);
  std::mutex lock;
  long done = 0;
  const auto show = [&](const Run& run, long steps) {
    char note[96];
    std::snprintf(note, sizeof note, "%s R = %ld", title_of(recurrent_kinds, run.kind).c_str(),
                  long{run.units});
    const std::lock_guard guard(lock);
    progress.show(done += steps, note);
  };
  run_jobs(runs.size(), e.threads, [&](std::size_t i) {
    flush_denormals();
    Run& run = runs[order[i]];
    TrainingPlan plan = e.plan;
    plan.rate = run.rate;
    plan.steps = run.steps;
    run.result = with_classifier(run.kind, encoder, run.units, run.eta, plan.seed, [&](auto model) {
      ClassifierTrainer<decltype(model), Data> trainer(model, data, plan);
      return trainer.train([&] { show(run, 1); });
    });
    if (run.result.steps < plan.steps) show(run, plan.steps - run.result.steps);  // it diverged
  });
  return runs;
}

/// Of every model and size the run that is best on the validation set.
inline const Run& best_run(const std::vector<Run>& runs, const std::string& kind, fw::Index units) {
  const Run* best = nullptr;
  for (const Run& run : runs)
    if (run.kind == kind && run.units == units &&
        (best == nullptr || run.result.validation < best->result.validation))
      best = &run;
  if (best == nullptr) throw std::logic_error("no run of " + kind);
  return *best;
}
