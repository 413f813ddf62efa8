#pragma once

#include <cstdio>
#include <iostream>
#include <map>

#include "report/command_line.hpp"
#include "report/plot.hpp"
#include "training/experiments/task_run.hpp"

/// \file
/// The command line and the picture of code_execution and listops.

inline void add_task_options(CommandLine& app, TaskSettings& s) {
  app.add_option("--output", s.output, "folder of tables and pictures").show_default();
  app.add_models(s.models, task_model_kinds);
  app.add_positive("--steps", s.steps, "training steps");
  app.add_positive("--batch", s.batch, "sequences a step");
  app.add_positive("--rate", s.rate, "peak learning rate");
  app.add_positive("--test", s.test, "test sequences");
  app.add_option("--seed", s.seed, "of weights and sequences")
      .between(std::uint64_t{0}, test_seed - 1)
      .show_default();
  app.add_positive("--layers", s.sizes.layers, "blocks");
  app.add_positive("--width", s.sizes.width, "of the model");
  app.add_positive("--heads", s.sizes.heads, "of every memory");
  app.add_positive("--hidden", s.sizes.hidden, "of the feed-forward layers");
  app.add_option("--convolution", s.sizes.convolution,
                 "over how many tokens, before each memory; 0: none")
      .not_negative()
      .show_default();
  app.add_flag("--quick", s.quick, "an easier task, three minutes at most")
      .excludes({"--models", "--steps", "--rate", "--test"});
  app.add_flag("--smoke", s.smoke, "a few steps, to see that it runs").excludes({"--quick"});
}

/// True if the share of right answers of every model with fast weights is at least `least`. Prints
/// each comparison.
inline bool learned(const std::vector<TaskResult>& results, double least) {
  bool all = true;
  for (const TaskResult& r : results) {
    if (r.kind == "rnn") continue;
    const bool good = r.answers >= least;
    std::printf("%s: %.1f %% of the answers right, at least %.0f %% expected: %s\n",
                title_of(task_model_kinds, r.kind).c_str(), 100 * r.answers, 100 * least,
                good ? "good" : "FAILED");
    all = all && good;
  }
  return all;
}

/// A picture of the validation accuracy: of answers, or of whole sequences, with horizontal
/// `lines`, name by height in %.
struct TaskPanel {
  std::string ylabel;
  bool of_sequences;
  std::map<std::string, double> lines;
};

inline std::string panel_commands(const TaskSettings& s, const TaskPanel& panel) {
  std::string curves;
  for (const std::string& kind : s.models)
    curves += quoted(std::filesystem::path(s.output) / "curves.csv") + " using (strcol(1) eq '" +
              kind + "' ? $2 : NaN):(100*" + (panel.of_sequences ? "$4" : "$3") +
              ") with lines lw 2 title '" + title_of(task_model_kinds, kind) + "', ";
  int dash = 1;
  for (const auto& [title, height] : panel.lines)
    curves += std::to_string(height) + " with lines lw 2 lc 'gray40' dt " + std::to_string(++dash) +
              " title '" + title + "', ";
  curves.resize(curves.size() - 2);  // the last comma
  return "set ylabel '" + panel.ylabel + "'\nplot [][0:100] " + curves + "\n";
}

/// Draws panels of all models against the step side by side, into curves.png.
inline void plot_task(const TaskSettings& s, const std::vector<TaskPanel>& panels) {
  const auto count = static_cast<int>(panels.size());
  std::string commands = "set multiplot layout 1," + std::to_string(count) +
                         "\nset datafile separator ','\nset xlabel 'training step'\nset grid\nset "
                         "key below maxcols 3\nset bmargin 7\n";
  for (const TaskPanel& panel : panels) commands += panel_commands(s, panel);
  plot(std::filesystem::path(s.output) / "curves.png", commands + "unset multiplot\n", 800 * count,
       600);
}
