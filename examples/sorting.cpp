// Which symbols are the most frequent of a long sequence? The sorting task of the ∞-former (Martins
// et al. 2022, arXiv 2109.00301, section 4.1). The models have a short-term memory alone, or with
// the compressive memory, or with the ∞-former's continuous memory, whose past is sampled evenly or
// where it was attended to. They have equal size (the compressive one lacks the density's few
// weights) and the same number of vectors in memory. The program prints token accuracy with teacher
// forcing by the length of the sequence, beside the accuracy of ranking by counts in a window.
//
// The scale is smaller than the paper's: 2 layers of 64, N = 128, n from 512 to 4096, and a
// short-term memory of 64 tokens in each layer, so that two layers see the last 128. A model is
// trained at the shortest length first, and then at each longer one. --paper has the sizes of the
// published code (the paper's text has N = 1024 and a short-term memory of 2048), for which a CPU
// needs days.
//
//   build/release/examples/sorting [--quick] [--seed 2]

#include <cstdio>
#include <fastweights/training/schedule.hpp>
#include <iostream>

#include "report/command_line.hpp"
#include "report/experiments/sorting_picture.hpp"
#include "report/files.hpp"
#include "report/plot.hpp"
#include "training/progress.hpp"
#include "training/sequence_trainer.hpp"

namespace {

struct Settings {
  std::string output = "build/sorting";
  std::vector<std::string> models = keys_of(sorting_kinds);
  std::vector<long> lengths = {512, 1024, 2048, 4096};
  long steps = 1500, more = 400, batch = 32, test = 400, warmup = 100;
  double rate = 8e-3, later_rate = 2e-3, clip = 1;
  std::uint64_t seed = 1;
  SortingOptions sizes;
  bool quick = false, paper = false, smoke = false;
};

struct Result {
  std::string kind;
  long parameters = 0;
  long length = 0, steps = 0;
  double accuracy = 0, loss = 0, seconds = 0;  // a training step
};

// Test sequences are of a seed that no training uses.
constexpr std::uint64_t test_seed = 1'000'003;

// Sequences first, first + 1, … of a seed.
auto drawn(std::uint64_t seed, long first, long length) {
  return [=](long i) {
    return sorting_sequence(
        draw_sort_sequence(seed, static_cast<std::uint64_t>(first + i), length));
  };
}

// Trains on from the current parameters of the model.
Result train(const Settings& s, const std::string& kind, SortingModel& model, long length,
             bool first) {
  const long steps = first ? s.steps : s.more;
  model.reading = {.tail = s.sizes.window, .reach = kind == "cache" ? long{s.sizes.reach()} : 0};
  SequenceTrainer trainer(model, {.beta2 = 0.98, .weight_decay = 0, .clip = s.clip});
  const fw::WarmupCosine rate{.peak = first ? s.rate : s.later_rate,
                              .warmup = std::min(s.warmup, steps / 4),
                              .total = steps};
  Progress progress(kind + " " + std::to_string(length), steps);
  double seconds = 0;
  const std::uint64_t seed = s.seed * 65537 + static_cast<std::uint64_t>(length);
  trainer.train(
      steps, s.batch, rate, [&](long step) { return drawn(seed, step * s.batch, length); },
      [&](const SequenceTrainer::Step& step, const Score& score) {
        seconds += step.seconds;
        char note[64];
        std::snprintf(note, sizeof note, "loss %.2f  accuracy %.0f %%", score.loss,
                      100 * score.accuracy());
        progress.show(static_cast<long>(step.step), note);
      });
  const Score score = trainer.evaluate(s.test, drawn(test_seed + s.seed, 0, length));
  return {kind,
          parameter_count(model),
          length,
          steps,
          score.accuracy(),
          score.loss,
          seconds / static_cast<double>(steps)};
}

std::vector<Result> train_all(const Settings& s, const std::string& kind) {
  const auto model = make_sorting_model(kind, s.sizes);
  fw::Random random(s.seed);
  model->initialise(random);
  std::vector<Result> results;
  for (const long length : s.lengths) {
    results.push_back(train(s, kind, *model, length, results.empty()));
    std::printf("%-12s n = %5ld: accuracy %.1f %%\n", kind.c_str(), length,
                100 * results.back().accuracy);
    std::fflush(stdout);
  }
  const auto folder = std::filesystem::path(s.output) / kind;
  std::filesystem::create_directories(folder);
  show_memory(*model, s.sizes, draw_sort_sequence(test_seed + s.seed, 0, s.lengths.front()),
              kind + ", n = " + std::to_string(s.lengths.front()), folder);
  return results;
}

void print_table(const Settings& s, const std::vector<Result>& results) {
  std::printf(
      "\nToken accuracy in %% with teacher forcing, %ld test sequences, seed %llu; %ld "
      "layers of %ld, a window of %ld tokens in each, N = %ld\n\n| model | parameters |",
      s.test, static_cast<unsigned long long>(s.seed), long{s.sizes.layers}, long{s.sizes.width},
      long{s.sizes.window}, long{s.sizes.functions});
  for (const long n : s.lengths) std::printf(" n = %ld |", n);
  std::printf(" seconds a step at n = %ld |\n|---|---|", s.lengths.back());
  for (std::size_t i = 0; i <= s.lengths.size(); ++i) std::printf("---|");
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Result& r = results[i];
    if (r.length == s.lengths.front())
      std::printf("\n| %s | %ld |", title_of(sorting_kinds, r.kind).c_str(), long{r.parameters});
    std::printf(" %.1f |", 100 * r.accuracy);
    if (r.length == s.lengths.back()) std::printf(" %.3f |", r.seconds);
  }
  for (const long window : {0L, long{s.sizes.reach()}}) {
    std::printf(window == 0 ? "\n| any order | |" : "\n| counts in the last %ld | |", window);
    for (const long n : s.lengths)
      std::printf(" %.1f |", 100 * window_accuracy(static_cast<std::size_t>(window),
                                                   test_seed + s.seed, s.test, n));
    std::printf(" |");
  }
  std::printf("\n\n");
}

void write_csv(const Settings& s, const std::vector<Result>& results) {
  std::ofstream csv = open_to_write(std::filesystem::path(s.output) / "accuracy.csv");
  csv << "model,length,accuracy,loss,steps,seconds_per_step,parameters\n";
  for (const Result& r : results)
    csv << r.kind << "," << r.length << "," << r.accuracy << "," << r.loss << "," << r.steps << ","
        << r.seconds << "," << r.parameters << "\n";
  std::ofstream counts = open_to_write(std::filesystem::path(s.output) / "counts.csv");
  counts << "length,random,64,128,256,512\n";
  for (const long n : s.lengths) {
    counts << n;
    for (const std::size_t window : {0UL, 64UL, 128UL, 256UL, 512UL})
      counts << "," << window_accuracy(window, test_seed + s.seed, s.test, n);
    counts << "\n";
  }
}

void draw(const Settings& s) {
  const auto folder = std::filesystem::path(s.output);
  std::string curves;
  for (const std::string& kind : s.models)
    curves += quoted(folder / "accuracy.csv") + " using (strcol(1) eq '" + kind +
              "' ? $2 : NaN):(100*$3) with linespoints pt 7 lw 2 title '" +
              title_of(sorting_kinds, kind) + "', ";
  plot(folder / "accuracy.png",
       "set datafile separator ','\nset logscale x 2\nset xlabel 'tokens to sort'\nset ylabel "
       "'token accuracy, %'\nset grid\nset key outside right\nplot [][0:100] " +
           curves + "for [i=2:6] " + quoted(folder / "counts.csv") +
           " using 1:(100*column(i)) with lines dt i lc 'gray40' title (i == 2 ? 'any order' : "
           "'counts in the last '.columnheader(i))\n");
}

void add_sizes(CommandLine& app, SortingOptions& o) {
  app.add_positive("--layers", o.layers, "blocks");
  app.add_positive("--width", o.width, "of the model");
  app.add_positive("--heads", o.heads, "of every attention");
  app.add_positive("--hidden", o.hidden, "of the feed-forward layers");
  app.add_positive("--window", o.window, "tokens of a layer's short-term memory");
  app.add_positive("--chunk", o.chunk, "tokens remembered together");
  app.add_positive("--functions", o.functions, "N, and slots of the compressive memory");
  app.add_positive("--samples", o.samples, "M, of the old signal, taken evenly");
  app.add_positive("--sticky-samples", o.sticky, "M, taken where it was attended to");
  app.add_positive("--compression", o.rate, "tokens to a slot");
  app.add_option("--tau", o.tau, "contraction; 0: all past tokens weigh the same").show_default();
}

Settings parse(int argc, char** argv) {
  Settings s;
  CommandLine app("Sorting symbols by frequency with a short-term and a long-term memory");
  app.add_option("--output", s.output, "folder of tables and pictures").show_default();
  app.add_models(s.models, sorting_kinds);
  app.add_positive("--lengths", s.lengths, "of the sequences, ascending").delimiter(',');
  app.add_positive("--steps", s.steps, "training steps at the first length");
  app.add_positive("--more", s.more, "at each of the others");
  app.add_positive("--batch", s.batch, "sequences a step");
  app.add_positive("--rate", s.rate, "peak learning rate");
  app.add_positive("--later-rate", s.later_rate, "at the other lengths");
  app.add_positive("--test", s.test, "test sequences");
  app.add_option("--seed", s.seed, "of weights and sequences").show_default();
  CommandLine sizes = app.add_group("Sizes");
  add_sizes(sizes, s.sizes);
  app.add_flag("--quick", s.quick, "the shortest length, two models, three minutes")
      .excludes({"--lengths", "--steps", "--models"});
  sizes.excludes(app.add_flag("--paper", s.paper, "the published code's sizes")
                     .excludes({"--quick", "--lengths", "--steps", "--more", "--batch", "--rate",
                                "--later-rate"}));
  app.add_flag("--smoke", s.smoke, "a few steps, to see that it runs");
  app.parse(argc, argv);
  use_own_folder(app, s.output, s.quick || s.smoke);
  if (s.quick) s.lengths = {512}, s.steps = 600, s.models = {"cache", "continuous"};
  if (s.smoke) s.lengths = {150, 200}, s.steps = 3, s.more = 2, s.batch = 4, s.test = 8;
  if (s.smoke) s.sizes.window = s.sizes.chunk = 32, s.sizes.functions = 17;
  if (s.paper) {
    s.sizes = {.layers = 3,
               .width = 300,
               .heads = 6,
               .hidden = 300,
               .window = 1024,
               .chunk = 1024,
               .functions = 512,
               .samples = 512,
               .sticky = 512,
               .rate = 4,
               .widths = {0.01, 0.05},
               .ridge = 1,
               .tau = 0.75};
    s.lengths = {4000, 8000, 16000};
    s.steps = s.more = 20000;
    s.batch = 8;
    s.rate = s.later_rate = 2e-4;
  }
  return s;
}

}  // namespace

int main(int argc, char** argv) try {
  const Settings s = parse(argc, argv);
  Eigen::setNbThreads(1);  // the shards run in parallel
  make_folder(s.output);
  std::vector<Result> results;
  for (const std::string& kind : s.models)
    for (Result& r : train_all(s, kind)) results.push_back(std::move(r));
  print_table(s, results);
  write_csv(s, results);
  draw(s);
} catch (const std::exception& error) {
  std::cerr << "sorting: " << error.what() << "\n";
  return 1;
}
