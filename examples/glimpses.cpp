// Which digit is it, seen as 24 small glimpses one after the other? The glimpse task of Ba, Hinton,
// Mnih, Leibo, Ionescu 2016, "Using Fast Weights to Attend to the Recent Past", arXiv 1610.06258,
// section 4.2, with the networks of associative_retrieval and a plain RNN of tanh. The paper has 24
// glimpses on two levels in a fixed order. Here every quarter of the image is seen as a whole at
// low resolution, then its four corners, then the whole again.
//
// With the files of MNIST, glimpses are of 7x7 pixels as in the paper. Otherwise the images are the
// handwritten digits of 8x8 pixels that scikit-learn ships, and glimpses are of 3x3. These images
// are others and fewer, so that the paper's errors are a guide there and no goal.
//
//   script/parts/digits build/digits/digits.csv
//   build/release/examples/glimpses [--quick] [--seed 2] [--mnist FOLDER]
//
// Every model is trained at each learning rate, the fast weights also with each η; the run with the
// best validation error counts.

#include <cstdio>
#include <iostream>

#include "models/classifiers/classifiers.hpp"
#include "report/experiment_options.hpp"
#include "report/experiments/classifier_report.hpp"
#include "tasks/glimpse_task.hpp"

namespace {

// Table 2 of the paper, on MNIST, in %.
const PublishedErrors published{{"IRNN", {{50, 12.95}, {100, 1.95}, {200, 1.42}}},
                                {"LSTM", {{50, 12}, {100, 1.55}, {200, 1.10}}},
                                {"fast weights", {{50, 7.21}, {100, 1.30}, {200, 0.85}}}};

struct Settings {
  Experiment experiment;
  std::string digits = "build/digits/digits.csv", mnist;
  int copies = 50;
  double target = 0;  // largest error in % of the fast weights for success; 0: any
  bool quick = false, smoke = false;
};

Settings parse(int argc, char** argv) {
  Settings s;
  Experiment& e = s.experiment;
  e.name = "glimpses";
  e.output = "build/glimpses";
  e.models = {"rnn", "irnn", "lstm", "delta", "norm", "fast"};
  e.rates = {1e-2, 3e-3};
  e.etas = {0.02, 0.05, 0.1};
  e.plan.steps = 0;
  e.published = published;
  e.source = "paper, MNIST";
  CommandLine app("Digits seen in glimpses by recurrent networks with and without fast weights");
  app.add_option("--digits", s.digits, "the digits of 8x8 pixels")
      .environment("FASTWEIGHTS_DIGITS")
      .show_default();
  app.add_option("--mnist", s.mnist, "folder of MNIST's four IDX files, unpacked");
  app.add_positive("--copies", s.copies, "warped versions of a digit of 8x8 pixels to train on");
  add_experiment_options(app, e);
  app.option("--units").show_default("10,20,50; of MNIST 50,100,200");
  app.option("--steps").show_default("6000; of MNIST 20000");
  app.add_flag("--quick", s.quick, "one size, a minute; fails where the fast weights do not learn")
      .excludes({"--models", "--units", "--steps", "--rates", "--etas"});
  app.add_flag("--smoke", s.smoke, "a few steps, to see that it runs").excludes({"--quick"});
  parse_options(app, argc, argv, e);
  const bool mnist = !s.mnist.empty();
  if (s.quick) e.units = {mnist ? 50 : 20}, e.plan.steps = 1500, s.target = 20;
  if (s.smoke) e.units = {20}, e.plan.steps = 4, s.copies = 2;
  if (s.quick || s.smoke) e.rates = {1e-2}, e.etas = {0.05};
  if (e.units.empty() && mnist) e.units = {50, 100, 200};
  if (e.units.empty()) e.units = {10, 20, 50};
  if (e.plan.steps == 0) e.plan.steps = mnist ? 20000 : 6000;
  return s;
}

Splits<GlimpseSequences> split(const Images& train, const Images& test, std::size_t validation,
                               int patch, std::span<const int> order) {
  return {{select(train, order.subspan(validation)), patch},
          {select(train, order.first(validation)), patch},
          {test, patch}};
}

Splits<GlimpseSequences> read_data(const Settings& s) {
  const std::uint64_t seed = s.experiment.plan.seed;
  if (!s.mnist.empty()) {
    const Images train = read_mnist(s.mnist, "train"), test = read_mnist(s.mnist, "t10k");
    return split(train, test, train.size() / 12, 7, shuffled(train.size(), seed));
  }
  const Images all = read_digits(s.digits);
  const std::vector<int> order = shuffled(all.size(), seed);
  const std::size_t tested = all.size() * 4 / 9;
  auto data = split(all, select(all, std::span(order).first(tested)), all.size() / 6, 3,
                    std::span(order).subspan(tested));
  data.train = {warped(data.train.images, s.copies, seed), 3};
  return data;
}

void say_what_it_is(const Settings& s, const Splits<GlimpseSequences>& data) {
  const Images& images = data.train.images;
  std::printf(
      "%s: %dx%d pixels, 24 glimpses of %dx%d; %zu images to train on, %zu to validate, %zu to "
      "test\n",
      s.mnist.empty() ? "The digits of scikit-learn (UCI), not MNIST" : "MNIST", images.side,
      images.side, data.train.patch, data.train.patch, data.train.size(), data.validation.size(),
      data.test.size());
  if (s.mnist.empty()) std::printf("The paper's errors are on MNIST: a guide here and no goal.\n");
  std::fflush(stdout);  // before the progress bar
}

}  // namespace

int main(int argc, char** argv) try {
  const Settings s = parse(argc, argv);
  const auto data = read_data(s);
  say_what_it_is(s, data);
  const Tokens tokens{.size = data.train.patch * data.train.patch};
  return run_experiment(
      s.experiment,
      [&](const Run& run, std::uint64_t seed) {
        return make_classifier<float>(run.kind, tokens, run.units, run.eta, seed);
      },
      as_classified(data), "Test error in % beside the paper's on MNIST (a guess: 90)", s.target);
} catch (const std::exception& error) {
  std::cerr << "glimpses: " << error.what() << "\n";
  return 1;
}
