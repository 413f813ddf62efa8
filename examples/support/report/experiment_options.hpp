#pragma once

#include "models/recurrent_kinds.hpp"
#include "report/options.hpp"
#include "training/classifier_experiment.hpp"
#include "training/threads.hpp"

/// The options that experiments have in common, with the values they have as defaults.
inline void add_experiment_options(CLI::App& app, Experiment& e) {
  app.add_option("--output", e.output, "folder of tables and picture")->capture_default_str();
  add_models(app, e.models, recurrent_kinds);
  positive(app, "--units", e.units, "hidden units R")->delimiter(',');
  positive(app, "--rates", e.rates, "peak learning rates to choose from")->delimiter(',');
  positive(app, "--steps", e.plan.steps, "training steps of every run");
  positive(app, "--batch", e.plan.batch, "sequences a step");
  positive(app, "--clip", e.plan.clip, "largest norm of a gradient");
  positive(app, "--etas", e.etas,
           "how much the fast weights take in of a hidden state, to choose from")
      ->delimiter(',');
  app.add_option("--seed", e.plan.seed, "of weights and data")->capture_default_str();
  app.add_option("--threads", e.threads, "runs at the same time, by default one a core");
}

inline void parse_options(CLI::App& app, int argc, char** argv, Experiment& e) {
  parse_or_exit(app, argc, argv);
  keep_apart(app, e.output, app.count("--quick") + app.count("--smoke") > 0);
  e.threads = threads_or_all(e.threads);
}
