// Which digit stood behind the letter? The associative retrieval task of Ba, Hinton, Mnih, Leibo,
// Ionescu 2016, "Using Fast Weights to Attend to the Recent Past", arXiv 1610.06258, section 4.1: a
// model reads four pairs of a letter and a digit, then one of the letters, and answers with its
// digit. The models are a plain recurrent net of ReLU (IRNN), an LSTM, a delta-rule memory and the
// paper's fast weights, all of R hidden units and trained alike. The program prints the errors on
// test sequences beside the paper's, writes them as CSV and draws them.
//
//   build/release/examples/associative_retrieval [--quick] [--seed 2] [--threads 4]
//
// Every model is trained at each learning rate; the run with the best validation error counts. Nets
// of 20 units learn more slowly than larger ones and get twice their steps.

#include <iostream>

#include "models/classifiers/classifiers.hpp"
#include "report/experiment_options.hpp"
#include "report/experiments/classifier_report.hpp"
#include "tasks/associative_retrieval_task.hpp"

namespace {

// Table 1 of the paper, in %.
const PublishedErrors published{{"IRNN", {{20, 62.11}, {50, 60.23}, {100, 0.34}}},
                                {"LSTM", {{20, 60.81}, {50, 1.85}, {100, 0}}},
                                {"associative LSTM", {{20, 60.13}, {50, 1.62}, {100, 0}}},
                                {"fast weights", {{20, 1.81}, {50, 0}, {100, 0}}}};

struct Settings {
  Experiment experiment;
  int pairs = 4;
  long train = 100000, validation = 10000, test = 20000;
  double target = 0;  // largest error in % of the fast weights for success; 0: any
  bool quick = false, smoke = false;
};

Settings parse(int argc, char** argv) {
  Settings s;
  Experiment& e = s.experiment;
  e.name = "retrieval";
  e.output = "build/associative_retrieval";
  e.models = {"irnn", "lstm", "delta", "fast"};
  e.units = {20, 50, 100};
  e.plan.steps = 30000;
  e.published = published;
  CommandLine app("Associative retrieval by recurrent networks with and without fast weights");
  add_experiment_options(app, e);
  app.option("--steps").show_default("30000, 60000 where R = 20");
  app.add_option("--pairs", s.pairs, "K").between(1, 26).show_default();
  app.add_flag("--quick", s.quick, "R = 50, a minute; fails where the fast weights do not learn")
      .excludes({"--models", "--units", "--steps", "--rates"});
  app.add_flag("--smoke", s.smoke, "a few steps, to see that it runs").excludes({"--quick"});
  parse_options(app, argc, argv, e);
  if (!app.given("--steps")) e.steps = {{20, 2 * e.plan.steps}};
  if (s.pairs != 4) e.published.clear();
  if (s.quick) e.units = {50}, e.plan.steps = 5000, e.rates = {3e-3}, s.target = 10;
  if (s.smoke) e.units = {50}, e.plan.steps = 4, e.rates = {1e-3};
  if (s.smoke) s.train = 500, s.validation = s.test = 200;
  return s;
}

Splits<SymbolSequences> draw_data(const Settings& s) {
  const std::uint64_t first = 3 * s.experiment.plan.seed;
  return {draw_retrievals(first, s.train, s.pairs),
          draw_retrievals(first + 1, s.validation, s.pairs),
          draw_retrievals(first + 2, s.test, s.pairs)};
}

}  // namespace

int main(int argc, char** argv) try {
  const Settings s = parse(argc, argv);
  const std::string heading = "Associative retrieval, K = " + std::to_string(s.pairs) +
                              ": test error in % beside the paper's (a guess: 90)";
  const Tokens tokens{.size = 50, .symbols = retrieval_symbols};
  const auto data = draw_data(s);
  return run_experiment(
      s.experiment,
      [&](const Run& run, std::uint64_t seed) {
        return make_classifier<float>(run.kind, tokens, run.units, run.eta, seed);
      },
      as_classified(data), heading, s.target);
} catch (const std::exception& error) {
  std::cerr << "associative_retrieval: " << error.what() << "\n";
  return 1;
}
