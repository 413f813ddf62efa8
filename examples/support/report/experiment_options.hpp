#pragma once

#include "models/classifiers/recurrent_kinds.hpp"
#include "report/command_line.hpp"
#include "training/experiments/classifier_experiment.hpp"
#include "training/threads.hpp"

/// The options that experiments have in common; their current values are the defaults.
inline void add_experiment_options(CommandLine& app, Experiment& e) {
  app.add_option("--output", e.output, "folder of tables and picture").show_default();
  app.add_models(e.models, recurrent_kinds);
  app.add_positive("--units", e.units, "hidden units R").delimiter(',');
  app.add_positive("--rates", e.rates, "peak learning rates to choose from").delimiter(',');
  app.add_positive("--steps", e.plan.steps, "training steps of every run");
  app.add_positive("--batch", e.plan.batch, "sequences a step");
  app.add_positive("--clip", e.plan.clip, "largest norm of a gradient");
  app.add_positive("--etas", e.etas,
                   "how much the fast weights take in of a hidden state, to choose from")
      .delimiter(',');
  app.add_option("--seed", e.plan.seed, "of weights and data").show_default();
  app.add_option("--threads", e.threads, "runs at the same time, by default one a core");
}

inline void parse_options(CommandLine& app, int argc, char** argv, Experiment& e) {
  app.parse(argc, argv);
  use_own_folder(app, e.output, app.given("--quick") || app.given("--smoke"));
  e.threads = threads_or_all(e.threads);
}
