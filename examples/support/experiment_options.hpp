#pragma once

#include <CLI/CLI.hpp>

#include "classifier_experiment.hpp"
#include "threads.hpp"

/// The options that experiments have in common, with the values they have as defaults.
inline void add_experiment_options(CLI::App& app, Experiment& e) {
  std::vector<std::string> kinds;
  for (const RecurrentKind& kind : recurrent_kinds) kinds.push_back(kind.key);
  app.add_option("--output", e.output, "folder of tables and picture")->capture_default_str();
  app.add_option("--models", e.models, "which to train")
      ->delimiter(',')
      ->check(CLI::IsMember(kinds))
      ->capture_default_str();
  app.add_option("--units", e.units, "hidden units R")->delimiter(',');
  app.add_option("--rates", e.rates, "peak learning rates to choose from")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--steps", e.plan.steps, "training steps of every run")
      ->check(CLI::PositiveNumber);
  app.add_option("--batch", e.plan.batch, "sequences a step")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--clip", e.plan.clip, "largest norm of a gradient")->capture_default_str();
  app.add_option("--etas", e.etas,
                 "how much the fast weights take in of a hidden state, to choose from")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--seed", e.plan.seed, "of weights and data")->capture_default_str();
  app.add_option("--threads", e.threads, "runs at the same time, by default one a core");
}

/// Parses the command line; prints help or an error and ends the program where there is one.
inline void parse_options(CLI::App& app, int argc, char** argv, Experiment& e) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error));
  }
  e.threads = threads_or_all(e.threads);
}
