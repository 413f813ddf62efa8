#include "report/experiments/classifier_report.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>

#include "models/classifiers/recurrent_kinds.hpp"
#include "report/files.hpp"
#include "report/plot.hpp"

namespace {

std::string percent(const PublishedErrors& errors, const std::string& title, fw::Index units) {
  const auto model = errors.find(title);
  if (model == errors.end() || !model->second.contains(units)) return "";
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", model->second.at(units));
  return text;
}

// A row a model, with our error and the paper's for every size; then models of the paper alone.
void print_errors(const Experiment& e, const std::vector<Run>& runs) {
  std::printf("| model |");
  for (const fw::Index r : e.units) std::printf(" R = %ld | paper |", long{r});
  std::printf("\n|---|");
  for (std::size_t i = 0; i < e.units.size(); ++i) std::printf("---|---|");
  for (const std::string& kind : e.models) {
    std::printf("\n| %s |", title_of(recurrent_kinds, kind).c_str());
    for (const fw::Index r : e.units)
      std::printf(" %.2f | %s |", 100 * best_run(runs, kind, r).result.test,
                  percent(e.published, title_of(recurrent_kinds, kind), r).c_str());
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

std::string eta_of(const Run& run) {
  char text[32] = "";
  if (run.kind == "fast") std::snprintf(text, sizeof text, "%g", run.eta);
  return text;
}

void print_runs(const Experiment& e, const std::vector<Run>& runs) {
  std::printf(
      "| model | R | parameters | steps | rate | η | ms a step |\n|---|---|---|---|---|---|---|\n");
  for (const std::string& kind : e.models)
    for (const fw::Index r : e.units) {
      const Run& run = best_run(runs, kind, r);
      std::printf("| %s | %ld | %ld | %ld | %g | %s | %.2f |\n",
                  title_of(recurrent_kinds, kind).c_str(), long{r}, long{run.result.parameters},
                  run.result.steps, run.rate, eta_of(run).c_str(),
                  1e3 * run.result.seconds / static_cast<double>(std::max(1L, run.result.steps)));
    }
  std::printf("\n");
}

void write_csv(const Experiment& e, const std::vector<Run>& runs) {
  const auto folder = std::filesystem::path(e.output);
  std::ofstream errors = open_to_write(folder / "errors.csv"),
                curves = open_to_write(folder / "curves.csv");
  errors
      << "model,units,rate,eta,seed,parameters,steps,validation_error,test_error,seconds,chosen\n";
  curves << "model,units,rate,eta,step,loss,validation_error\n";
  for (const Run& run : runs) {
    const auto& r = run.result;
    errors << run.kind << "," << run.units << "," << run.rate << "," << run.eta << ","
           << e.plan.seed << "," << r.parameters << "," << r.steps << "," << r.validation << ","
           << r.test << "," << r.seconds << "," << (&best_run(runs, run.kind, run.units) == &run)
           << "\n";
    for (const CurvePoint& p : r.curve)
      curves << run.kind << "," << run.units << "," << run.rate << "," << run.eta << "," << p.step
             << "," << p.loss << "," << p.validation << "\n";
  }
  std::ofstream published = open_to_write(folder / "published.csv");
  published << "model,units,error\n";
  for (const auto& [title, sizes] : e.published)
    for (const auto& [units, error] : sizes)
      published << title << "," << units << "," << error << "\n";
}

// The number of units where our runs or the paper have an error, as gnuplot's tics.
std::string tics_of(const Experiment& e) {
  std::set<fw::Index> units(e.units.begin(), e.units.end());
  for (const auto& [title, errors] : e.published)
    for (const auto& [size, error] : errors) units.insert(size);
  std::string tics;
  for (const fw::Index size : units) {
    tics += tics.empty() ? "(" : ",";
    tics += std::to_string(size);
  }
  return tics + ")";
}

// gnuplot's column, at least `low`.
std::string at_least(const std::string& low, const std::string& column) {
  return "(" + column + " > " + low + " ? " + column + " : " + low + ")";
}

// Ours with full points and the paper's with empty ones, in the same colour where it is one model.
std::string size_curves(const Experiment& e, const std::string& low) {
  const auto folder = std::filesystem::path(e.output);
  std::string curves;
  std::map<std::string, int> colours;
  for (const std::string& kind : e.models) {
    const int colour = colours[title_of(recurrent_kinds, kind)] =
        static_cast<int>(colours.size()) + 1;
    curves += quoted(folder / "errors.csv") + " using (strcol(1) eq '" + kind +
              "' && $11 == 1 ? $2 : NaN):" + at_least(low, "100*$9") +
              " with linespoints pt 7 lw 2 lc " + std::to_string(colour) + " title '" +
              title_of(recurrent_kinds, kind) + "', ";
  }
  for (const auto& published : e.published) {
    const std::string& title = published.first;
    const auto own = colours.try_emplace(title, static_cast<int>(colours.size()) + 1).first;
    curves += quoted(folder / "published.csv") + " using (strcol(1) eq '" + title +
              "' ? $2 : NaN):" + at_least(low, "$3") + " with linespoints pt 6 dt 2 lc " +
              std::to_string(own->second) + " title '" + e.source + ": " + title + "', ";
  }
  return curves;
}

std::string training_curves(const Experiment& e, const std::vector<Run>& runs,
                            const std::string& low) {
  std::string curves;
  int colour = 0;
  for (const std::string& kind : e.models) {
    ++colour;
    int dash = 0;
    for (const fw::Index units : e.units) {
      const Run& best = best_run(runs, kind, units);
      char condition[128];
      std::snprintf(condition, sizeof condition,
                    "strcol(1) eq '%s' && $2 == %ld && $3 == %g && $4 == %g", kind.c_str(),
                    long{units}, best.rate, best.eta);
      curves += quoted(std::filesystem::path(e.output) / "curves.csv") + " using (" + condition +
                " ? $5 : NaN):" + at_least(low, "100*$7") + " with lines lw 2 dt " +
                std::to_string(++dash) + " lc " + std::to_string(colour) + " title '" +
                title_of(recurrent_kinds, kind) + ", R = " + std::to_string(units) + "', ";
    }
  }
  return curves;
}

// Test errors against R beside the published ones, and the validation errors of the chosen runs
// against training steps. `floor`: the error in % that one wrong sequence makes, drawn for none.
void draw(const Experiment& e, const std::vector<Run>& runs, double floor) {
  char low_text[32];
  std::snprintf(low_text, sizeof low_text, "%.2g", floor);
  const std::string low = low_text;
  const std::string margin = e.models.size() * e.units.size() > 12 ? "13" : "9";  // for the key
  plot(std::filesystem::path(e.output) / "errors.png",
       "set datafile separator ','\nset datafile missing NaN\nset multiplot layout 1,2\nset grid\n"
       "set logscale y\nset key below maxcols 4 font ',9'\nset bmargin " +
           margin + "\nset ylabel 'test error, % (the lowest line: " + low +
           " or less)'\nset xlabel 'hidden units'\nset xtics " + tics_of(e) + "\nplot [0:] " +
           size_curves(e, low) +
           "\nset xtics auto\nset xlabel 'training step'\nset ylabel 'validation error, %'\nplot " +
           training_curves(e, runs, low) + "\nunset multiplot\n",
       1500, 700);
}

// Compares the error of a model with `limit` % at every size and prints it. Returns the exit code.
int assert_error(const Experiment& e, const std::vector<Run>& runs, const std::string& kind,
                 double limit) {
  bool all = true;
  for (const fw::Index units : e.units) {
    const double error = 100 * best_run(runs, kind, units).result.test;
    const bool good = error <= limit;
    std::printf("%s, R = %ld: %.2f %% error, at most %.2f expected: %s\n",
                title_of(recurrent_kinds, kind).c_str(), long{units}, error, limit,
                good ? "good" : "FAILED");
    all = all && good;
  }
  return all ? 0 : 1;
}

void check_split(const std::string& what, const ClassifiedSequences& data) {
  if (data.size() == 0)
    throw std::invalid_argument("there are 0 sequences to " + what + ", expected at least 1");
}

}  // namespace

int run_experiment(const Experiment& e, const MakeClassifier& make,
                   const Splits<ClassifiedSequences>& data, const std::string& heading,
                   double target) {
  check_split("train on", data.train);
  check_split("validate", data.validation);
  check_split("test", data.test);
  Eigen::setNbThreads(1);  // the runs are parallel
  make_folder(e.output);
  const auto start = std::chrono::steady_clock::now();
  const auto runs = train_all(e, make, data);
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  std::printf("\n%s, batches of %ld, seed %llu\n\n", heading.c_str(), e.plan.batch,
              static_cast<unsigned long long>(e.plan.seed));
  print_errors(e, runs);
  print_runs(e, runs);
  std::printf("%.1f minutes with %d threads\n", spent.count() / 60, e.threads);
  write_csv(e, runs);
  draw(e, runs, 100.0 / static_cast<double>(data.test.size()));
  return target > 0 ? assert_error(e, runs, "fast", target) : 0;
}
