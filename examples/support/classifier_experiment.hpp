#pragma once

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "classifier_trainer.hpp"
#include "denormals.hpp"
#include "plot.hpp"
#include "progress.hpp"
#include "recurrent_models.hpp"

/// \file
/// Trains several models of several sizes on one task, each in a thread of its own, and sets their
/// errors beside those of Ba et al. 2016. Every model is trained at every learning rate, and the
/// run that is best on the validation set counts: what tuning there is, all models have alike.

/// Error in % of a model by its title and units.
using PublishedErrors = std::map<std::string, std::map<fw::Index, double>>;

struct Experiment {
  std::string name, output;
  std::vector<std::string> models;
  std::vector<fw::Index> units;
  std::vector<double> rates = {3e-3, 1e-3};
  TrainingPlan plan;
  double eta = 0.5;  ///< of the fast weights
  int threads = 0;
  PublishedErrors published;
};

struct Run {
  std::string kind;
  fw::Index units = 0;
  double rate = 0;
  TrainingResult result;
};

inline std::string title_of(const std::string& kind) {
  for (const RecurrentKind& k : recurrent_kinds)
    if (k.key == kind) return k.title;
  return kind;
}

/// All runs of an experiment, by model, units and rate.
inline std::vector<Run> planned_runs(const Experiment& e) {
  std::vector<Run> runs;
  for (const std::string& kind : e.models)
    for (const fw::Index units : e.units)
      for (const double rate : e.rates) runs.push_back({kind, units, rate, {}});
  return runs;
}

/// The numbers of the runs, those first that take longest, as the last ones may run alone.
inline std::vector<std::size_t> longest_first(const std::vector<Run>& runs) {
  std::vector<std::size_t> order(runs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t i) {
    return runs[i].units * (runs[i].kind == "lstm" || runs[i].kind == "delta" ? 3 : 1);
  });
  return order;
}

/// Calls f(0) … f(count − 1), the next one in whichever thread is free.
template <class F> void run_jobs(std::size_t count, int threads, F&& f) {
  std::exception_ptr thrown;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
  for (std::size_t i = 0; i < count; ++i) {
    try {
      flush_denormals();
      f(i);
    } catch (...) {
#pragma omp critical(run_jobs)
      thrown = std::current_exception();
    }
  }
  if (thrown) std::rethrow_exception(thrown);
}

/// The runs, trained. What comes out does not depend on the number of threads.
template <class Encoder, class Data>
std::vector<Run> train_all(const Experiment& e, const Encoder& encoder, const Splits<Data>& data) {
  std::vector<Run> runs = planned_runs(e);
  const std::vector<std::size_t> order = longest_first(runs);
  Progress progress(e.name, static_cast<long>(runs.size()) * e.plan.steps);
  std::mutex lock;
  long done = 0;
  const auto show = [&](const Run& run, long steps) {
    char note[96];
    std::snprintf(note, sizeof note, "%s R = %ld", title_of(run.kind).c_str(), long{run.units});
    const std::lock_guard guard(lock);
    progress.show(done += steps, note);
  };
  run_jobs(runs.size(), e.threads, [&](std::size_t i) {
    Run& run = runs[order[i]];
    TrainingPlan plan = e.plan;
    plan.rate = run.rate;
    run.result = with_classifier(run.kind, encoder, run.units, e.eta, plan.seed, [&](auto model) {
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

inline std::string percent(const PublishedErrors& errors, const std::string& title,
                           fw::Index units) {
  const auto model = errors.find(title);
  if (model == errors.end() || !model->second.contains(units)) return "";
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", model->second.at(units));
  return text;
}

/// A row a model, ours and the paper's error for every size; then what the paper alone has.
inline void print_errors(const Experiment& e, const std::vector<Run>& runs) {
  std::printf("| model |");
  for (const fw::Index r : e.units) std::printf(" R = %ld | paper |", long{r});
  std::printf("\n|---|");
  for (std::size_t i = 0; i < e.units.size(); ++i) std::printf("---|---|");
  for (const std::string& kind : e.models) {
    std::printf("\n| %s |", title_of(kind).c_str());
    for (const fw::Index r : e.units)
      std::printf(" %.2f | %s |", 100 * best_run(runs, kind, r).result.test,
                  percent(e.published, title_of(kind), r).c_str());
  }
  for (const auto& published : e.published) {
    const std::string& title = published.first;
    if (std::ranges::any_of(recurrent_kinds, [&](const auto& k) { return k.title == title; }))
      continue;
    std::printf("\n| %s |", title.c_str());
    for (const fw::Index r : e.units)
      std::printf(" | %s |", percent(e.published, title, r).c_str());
  }
  std::printf("\n\n");
}

inline void print_runs(const Experiment& e, const std::vector<Run>& runs) {
  std::printf("| model | R | parameters | rate | ms a step |\n|---|---|---|---|---|\n");
  for (const std::string& kind : e.models)
    for (const fw::Index r : e.units) {
      const Run& run = best_run(runs, kind, r);
      std::printf("| %s | %ld | %ld | %g | %.2f |\n", title_of(kind).c_str(), long{r},
                  long{run.result.parameters}, run.rate,
                  1e3 * run.result.seconds / static_cast<double>(std::max(1L, run.result.steps)));
    }
  std::printf("\n");
}

inline void write_csv(const Experiment& e, const std::vector<Run>& runs) {
  const auto folder = std::filesystem::path(e.output);
  std::ofstream errors(folder / "errors.csv"), curves(folder / "curves.csv");
  errors << "model,units,rate,seed,parameters,steps,validation_error,test_error,seconds,chosen\n";
  curves << "model,units,rate,step,loss,validation_error\n";
  for (const Run& run : runs) {
    const auto& r = run.result;
    errors << run.kind << "," << run.units << "," << run.rate << "," << e.plan.seed << ","
           << r.parameters << "," << r.steps << "," << r.validation << "," << r.test << ","
           << r.seconds << "," << (&best_run(runs, run.kind, run.units) == &run) << "\n";
    for (const CurvePoint& p : r.curve)
      curves << run.kind << "," << run.units << "," << run.rate << "," << p.step << "," << p.loss
             << "," << p.validation << "\n";
  }
  std::ofstream published(folder / "published.csv");
  published << "model,units,error\n";
  for (const auto& [title, sizes] : e.published)
    for (const auto& [units, error] : sizes)
      published << title << "," << units << "," << error << "\n";
}

/// Test errors against R beside the published ones, and the validation errors of the chosen runs
/// against training steps. `floor`: the error in % that one wrong sequence makes, drawn for none.
inline void draw(const Experiment& e, const std::vector<Run>& runs, double floor) {
  const auto folder = std::filesystem::path(e.output);
  const std::string low = std::to_string(floor);
  const auto at_least = [&](const std::string& column) {
    return "(" + column + " > " + low + " ? " + column + " : " + low + ")";
  };
  std::string sizes, curves;
  int colour = 0;
  for (const std::string& kind : e.models) {
    const std::string look = " lc " + std::to_string(++colour) + " title ";
    sizes += quoted(folder / "errors.csv") + " using (strcol(1) eq '" + kind +
             "' && $10 == 1 ? $2 : NaN):" + at_least("100*$8") + " with linespoints pt 7 lw 2" +
             look + "'" + title_of(kind) + "', ";
    if (e.published.contains(title_of(kind)))
      sizes += quoted(folder / "published.csv") + " using (strcol(1) eq '" + title_of(kind) +
               "' ? $2 : NaN):" + at_least("$3") + " with linespoints pt 6 dt 2" + look +
               "'paper: " + title_of(kind) + "', ";
    int dash = 0;
    for (const fw::Index units : e.units) {
      char condition[96];
      std::snprintf(condition, sizeof condition, "strcol(1) eq '%s' && $2 == %ld && $3 == %g",
                    kind.c_str(), long{units}, best_run(runs, kind, units).rate);
      curves += quoted(folder / "curves.csv") + " using (" + condition +
                " ? $4 : NaN):" + at_least("100*$6") + " with lines lw 2 dt " +
                std::to_string(++dash) + " lc " + std::to_string(colour) + " title '" +
                title_of(kind) + ", R = " + std::to_string(units) + "', ";
    }
  }
  plot(
      folder / "errors.png",
      "set datafile separator ','\nset datafile missing NaN\nset multiplot layout 1,2\nset "
      "grid\nset logscale y\nset key "
      "below maxcols 4 font ',9'\nset ylabel 'test error, %'\nset xlabel 'hidden units'\nset xtics "
      "(" +
          [&] {
            std::string tics;
            for (const fw::Index r : e.units) tics += (tics.empty() ? "" : ",") + std::to_string(r);
            return tics;
          }() +
          ")\nplot [0:] " + sizes +
          "\nset xtics auto\nset xlabel 'training step'\nset ylabel "
          "'validation error, %'\nplot " +
          curves + "\nunset multiplot\n",
      1500, 700);
}

/// The exit code: 0 where the error of that model is at most `limit` % at every size, and says so.
inline int assert_error(const Experiment& e, const std::vector<Run>& runs, const std::string& kind,
                        double limit) {
  bool all = true;
  for (const fw::Index units : e.units) {
    const double error = 100 * best_run(runs, kind, units).result.test;
    const bool good = error <= limit;
    std::printf("%s, R = %ld: %.2f %% error, at most %.2f expected: %s\n", title_of(kind).c_str(),
                long{units}, error, limit, good ? "good" : "FAILED");
    all = all && good;
  }
  return all ? 0 : 1;
}
