#include "training/experiments/classifier_experiment.hpp"

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <numeric>
#include <stdexcept>

#include "models/classifiers/recurrent_kinds.hpp"
#include "training/denormals.hpp"
#include "training/progress.hpp"
#include "training/threads.hpp"

std::vector<Run> planned_runs(const Experiment& e) {
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

std::vector<std::size_t> longest_first(const std::vector<Run>& runs) {
  std::vector<std::size_t> order(runs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t i) {
    const Run& run = runs[i];
    return run.steps * run.units * (run.kind == "lstm" || run.kind == "delta" ? 3 : 1);
  });
  return order;
}

std::vector<Run> train_all(const Experiment& e, const MakeClassifier& make,
                           const Splits<ClassifiedSequences>& data) {
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
    const auto model = make(run, plan.seed);
    run.result = train_classifier(*model, data, plan, [&] { show(run, 1); });
    if (run.result.steps < plan.steps) show(run, plan.steps - run.result.steps);  // it diverged
  });
  return runs;
}

const Run& best_run(const std::vector<Run>& runs, const std::string& kind, fw::Index units) {
  const Run* best = nullptr;
  for (const Run& run : runs)
    if (run.kind == kind && run.units == units &&
        (best == nullptr || run.result.validation < best->result.validation))
      best = &run;
  if (best == nullptr) throw std::logic_error("no run of " + kind);
  return *best;
}
