// A character-level language model of a real text, the same network around four memories: the sum
// rule, the delta rule with two kinds of keys, and softmax attention. Prints a table of validation
// bits per character, draws the curves, and lets every model write a few lines. There are no
// positions and no convolution: the models know the order of characters from causal reading alone,
// and differ in their memory only.
//
//   script/parts/text build/text/kjv.txt         # the King James Bible
//   build/release/examples/char_lm --text build/text/kjv.txt [--quick]
//
// `mpirun -n 2 build/release/examples/char_lm …` shares every batch between two processes.

#include <cstdio>
#include <fastweights/training/schedule.hpp>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>
#include <numbers>
#include <sstream>

#include "models/characters/char_model.hpp"
#include "models/characters/generation.hpp"
#include "report/command_line.hpp"
#include "report/files.hpp"
#include "report/plot.hpp"
#include "tasks/text.hpp"
#include "tasks/text_windows.hpp"
#include "training/progress.hpp"
#include "training/sequence_trainer.hpp"

namespace {

constexpr double nats_per_bit = std::numbers::ln2;

struct Settings {
  std::string text = "build/text/kjv.txt", output = "build/char_lm", prompt = "And God said";
  std::vector<std::string> models = keys_of(model_kinds);
  long steps = 4000, batch = 16, length = 128, evaluate_every = 100, checkpoint_every = 400;
  fw::Index layers = 2, heads = 4;
  double rate = 2e-3, clip = 1, temperature = 0.7;
  std::uint64_t seed = 1;
  long generate = 240;
  bool resume = false, quick = false, smoke = false;
};

struct Point {
  long step;
  double train, validation;  // bits per character
};

struct Result {
  std::string kind;
  long parameters = 0;
  double validation = 0, seconds = 0;  // in training steps
  std::vector<Point> curve;
  std::string sample;
};

std::string to_csv(const std::vector<Point>& curve) {
  std::ostringstream csv;
  csv << "step,train_bits,validation_bits\n";
  for (const Point& p : curve) csv << p.step << "," << p.train << "," << p.validation << "\n";
  return csv.str();
}

std::vector<Point> from_csv(const std::string& csv) {
  std::istringstream lines(csv);
  std::vector<Point> curve;
  std::string header;
  std::getline(lines, header);
  char comma = 0;
  for (Point p{}; lines >> p.step >> comma >> p.train >> comma >> p.validation;) curve.push_back(p);
  return curve;
}

std::filesystem::path checkpoint_path(const Settings& s, const std::string& kind) {
  return std::filesystem::path(s.output) / (kind + ".safetensors");
}

// All settings that the results depend on.
std::string run_of(const Settings& s, const Text& text) {
  std::ostringstream run;
  run << "seed " << s.seed << ", steps " << s.steps << ", batch " << s.batch << ", length "
      << s.length << ", layers " << s.layers << ", heads " << s.heads << ", rate " << s.rate
      << ", clip " << s.clip << ", text of " << text.symbols.size();
  return run.str();
}

void save_checkpoint(const Settings& s, const std::string& run, const CheckpointInfo& info,
                     const Result& result, SequenceTrainer& trainer) {
  fw::io::Metadata notes = describe(info);
  notes["run"] = run;
  notes["curve"] = to_csv(result.curve);
  notes["seconds"] = std::to_string(result.seconds);
  fw::io::save_training(trainer.model(), trainer.optimiser(), checkpoint_path(s, info.kind), notes);
}

// Continues from a checkpoint of the same run, and refuses one of another.
void load_checkpoint(const Settings& s, const std::string& run, const std::string& alphabet,
                     Result& result, SequenceTrainer& trainer) {
  const auto path = checkpoint_path(s, result.kind);
  if (!s.resume || !std::filesystem::exists(path)) return;
  const auto file = fw::io::SafeTensors::read(path);
  if (noted(file, "run") != run || checkpoint_info(file).alphabet != alphabet)
    throw std::invalid_argument(path.string() + " is of another run or text: " +
                                noted(file, "run") + "; this one is " + run);
  fw::io::load_training(trainer.model(), trainer.optimiser(), path);
  result.curve = from_csv(noted(file, "curve"));
  result.seconds = std::stod(noted(file, "seconds"));
  std::cout << path.string() << ": continues from step " << trainer.optimiser().steps << "\n";
}

std::string write_sample(const Settings& s, const Text& text, const LanguageModel<float>& model) {
  fw::Random random(s.seed);
  Stream stream(model);
  std::string written = s.prompt;
  for (const int symbol : encode(s.prompt, text.alphabet)) stream.read(symbol);
  for (long i = 0; i < s.generate; ++i) {
    const int symbol = stream.draw(random, s.temperature);
    written += text.alphabet[static_cast<std::size_t>(symbol)];
    stream.read(symbol);
  }
  return written;
}

// The windows at these starts. The symbols must outlive the result.
SequenceTrainer::Draw windows_at(std::span<const int> symbols, std::vector<std::size_t> starts,
                                 long length) {
  return [symbols, starts = std::move(starts), length](long i) {
    return text_window(symbols, starts[static_cast<std::size_t>(i)],
                       static_cast<std::size_t>(length));
  };
}

// The batch of a step. It depends on the step alone, so that a resumed run draws the same windows.
SequenceTrainer::Draw batch_of(const Settings& s, const Text& text, long step) {
  fw::Random random(s.seed * 1000003 + static_cast<std::uint64_t>(step));
  return windows_at(text.training(), draw_starts(text, s.batch, s.length, random), s.length);
}

// The mean loss in bits over consecutive windows of the validation text.
double validation_bits(const Settings& s, const Text& text, SequenceTrainer& trainer,
                       std::size_t windows = std::numeric_limits<std::size_t>::max()) {
  const auto starts = spread_starts(text.validation(), s.length, windows);
  return trainer
             .evaluate(static_cast<long>(starts.size()),
                       windows_at(text.validation(), starts, s.length))
             .loss /
         nats_per_bit;
}

Result train(const Settings& s, const Text& text, const std::string& kind,
             const ModelOptions& options, const Processes& processes) {
  const auto model = make_char_model(kind, options);
  fw::Random random(s.seed);
  model->initialise(random);
  const fw::WarmupCosine rate{
      .peak = s.rate, .warmup = s.steps / 20, .total = s.steps, .floor = s.rate / 100};
  check_text_length(text, s.length);
  SequenceTrainer trainer(*model, {.clip = s.clip}, std::max(1, 4 / processes.count()));
  Result result{.kind = kind, .parameters = parameter_count(*model), .curve = {}, .sample = {}};
  const std::string run = run_of(s, text);
  load_checkpoint(s, run, text.alphabet, result, trainer);
  trainer.join(processes);
  Progress progress(kind, s.steps);
  const auto after = [&](const SequenceTrainer::Step& step, const Score& score) {
    const double bits = score.loss / nats_per_bit;
    const auto done = static_cast<long>(step.step);
    result.seconds += step.seconds;
    if (done % s.evaluate_every == 0 || done == s.steps)
      result.curve.push_back({done, bits, validation_bits(s, text, trainer, 64)});
    if (!processes.is_first()) return;
    if (done % s.checkpoint_every == 0 || done == s.steps)
      save_checkpoint(s, run, {kind, text.alphabet, options}, result, trainer);
    char note[64];
    std::snprintf(note, sizeof note, "%.2f bits", bits);
    progress.show(done, note);
  };
  trainer.train(
      s.steps, s.batch, rate, [&](long step) { return batch_of(s, text, step); }, after);
  result.validation = validation_bits(s, text, trainer);
  result.sample = write_sample(s, text, *model);
  return result;
}

void print_table(const Settings& s, const Text& text, const std::vector<Result>& results) {
  std::printf(
      "\nValidation bits per character after %ld steps of %ld x %ld characters, seed %llu\n\n",
      s.steps, s.batch, s.length, static_cast<unsigned long long>(s.seed));
  std::printf(
      "| model | parameters | bits per character | seconds per step |\n|---|---|---|---|\n");
  for (const Result& r : results)
    std::printf("| %s | %lld | %.3f | %.4f |\n", title_of(model_kinds, r.kind).c_str(),
                static_cast<long long>(r.parameters), r.validation,
                r.seconds / static_cast<double>(s.steps));
  std::printf("| unigram entropy | | %.3f | |\n\n", unigram_entropy(text.validation()));
}

void write_curves(const Settings& s, const Text& text, const std::vector<Result>& results) {
  const auto folder = std::filesystem::path(s.output);
  std::string curves;
  for (const Result& r : results) {
    const auto file = folder / (r.kind + ".csv");
    open_to_write(file) << to_csv(r.curve);
    curves += quoted(file) + " using 1:3 skip 1 with linespoints pt 7 ps 0.5 lw 2 title '" +
              title_of(model_kinds, r.kind) + "', ";
  }
  plot(folder / "curves.png",
       "set datafile separator ','\nset xlabel 'training step'\nset ylabel 'validation bits per "
       "character'\nset grid\nset key top right\nplot [0:][:5.2] " +
           curves + std::to_string(unigram_entropy(text.validation())) +
           " with lines dt 2 lc 'gray40' title 'unigram entropy'\n");
}

Settings parse(int argc, char** argv) {
  Settings s;
  CommandLine app("Character-level language models around four memories");
  app.add_option("--text", s.text, "the text").environment("FASTWEIGHTS_TEXT").show_default();
  app.add_option("--output", s.output, "folder of checkpoints, curves and picture").show_default();
  app.add_models(s.models, model_kinds);
  const Option steps = app.add_positive("--steps", s.steps, "training steps");
  app.add_positive("--batch", s.batch, "windows a step");
  app.add_positive("--length", s.length, "characters a window");
  app.add_positive("--layers", s.layers, "blocks");
  app.add_positive("--heads", s.heads, "heads of 32; the width is their sum");
  app.add_positive("--rate", s.rate, "peak learning rate");
  app.add_option("--seed", s.seed, "of weights, windows and samples").show_default();
  app.add_option("--prompt", s.prompt, "what the models continue from").show_default();
  app.add_option("--generate", s.generate, "characters they write").not_negative().show_default();
  app.add_positive("--temperature", s.temperature, "of their writing");
  app.add_flag("--resume", s.resume, "continue from the checkpoints in the output folder");
  app.add_flag("--quick", s.quick, "a demonstration of two minutes: 800 steps by default");
  app.add_flag("--smoke", s.smoke, "a few steps, to see that it runs");
  app.parse(argc, argv);
  use_own_folder(app, s.output, s.quick || s.smoke);
  if (s.quick && !steps.given()) s.steps = 800;
  if (s.smoke) s.steps = 6, s.evaluate_every = 3, s.generate = 20;
  return s;
}

void run(const Settings& s, const Processes& processes) {
  Eigen::setNbThreads(1);  // the shards run in parallel
  const Text text = read_text(s.text);
  make_folder(s.output);
  std::printf("%s: %zu characters, %d symbols\n", s.text.c_str(), text.symbols.size(), text.size());
  std::fflush(stdout);              // before the progress bars
  encode(s.prompt, text.alphabet);  // throws now rather than after the training
  const ModelOptions options{
      .symbols = text.size(), .layers = s.layers, .heads = s.heads, .window = s.length};
  std::vector<Result> results;
  for (const std::string& kind : s.models)
    results.push_back(train(s, text, kind, options, processes));
  for (const Result& r : results)
    std::printf("\n%s writes:\n%s\n", r.kind.c_str(), r.sample.c_str());
  print_table(s, text, results);
  if (processes.is_first()) write_curves(s, text, results);
}

}  // namespace

int main(int argc, char** argv) try {
  const Settings s = parse(argc, argv);
  const Processes processes;
  return processes.run("char_lm", [&] {
    run(s, processes);
    return 0;
  });
} catch (const std::exception& error) {
  std::cerr << "char_lm: " << error.what() << "\n";
  return 1;
}
