// A character-level language model of a real text, the same network around four memories: the sum
// rule, the delta rule with two kinds of keys, and softmax attention. Prints a table of validation
// bits per character, draws the curves, and lets every model write a few lines.
//
//   script/text build/text/kjv.txt               # the King James Bible
//   build/release/examples/char_lm --text build/text/kjv.txt [--quick]

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <numbers>
#include <optional>

#include "support/char_model.hpp"
#include "support/generation.hpp"
#include "support/plot.hpp"
#include "support/progress.hpp"
#include "support/text.hpp"
#include "support/trainer.hpp"

namespace {

constexpr double nats_per_bit = std::numbers::ln2;

struct Settings {
  std::string text = "build/text/kjv.txt", output = "build/char_lm", prompt = "And God said";
  std::vector<std::string> models;
  long steps = 1200, batch = 16, length = 128, evaluate_every = 100, checkpoint_every = 400;
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
  fw::Index parameters = 0;
  double validation = 0, seconds_per_step = 0;
  std::vector<Point> curve;
  std::string sample;
};

std::filesystem::path checkpoint_path(const Settings& s, const std::string& kind) {
  return std::filesystem::path(s.output) / (kind + ".safetensors");
}

template <class Model>
void save_checkpoint(const Settings& s, const CheckpointInfo& info, const Model& model,
                     const fw::AdamW<Model>& optimiser) {
  fw::io::SafeTensorsWriter writer;
  describe(writer, info);
  writer.metadata("seed", std::to_string(s.seed));
  fw::io::add_parameters(writer, model, "model");
  fw::io::add_parameters(writer, optimiser.first, "first");
  fw::io::add_parameters(writer, optimiser.second, "second");
  writer.write(checkpoint_path(s, info.kind));
}

// Goes on from a checkpoint of the same run; what it says of the model is checked by its shapes.
template <class Model>
long load_checkpoint(const Settings& s, const std::string& kind, Model& model,
                     fw::AdamW<Model>& optimiser) {
  const auto path = checkpoint_path(s, kind);
  if (!s.resume || !std::filesystem::exists(path)) return 0;
  const auto file = fw::io::SafeTensors::read(path);
  fw::io::load_parameters(model, file, "model");
  fw::io::load_parameters(optimiser.first, file, "first");
  fw::io::load_parameters(optimiser.second, file, "second");
  optimiser.steps = checkpoint_info(file).step;
  std::cout << path.string() << ": goes on from step " << optimiser.steps << "\n";
  return optimiser.steps;
}

template <class Model>
std::string write_sample(const Settings& s, const Text& text, const Model& model) {
  fw::Random random(s.seed);
  Stream<Model> stream(model);
  std::string written = s.prompt;
  for (const int symbol : encode(s.prompt, text.alphabet)) stream.read(symbol);
  for (long i = 0; i < s.generate; ++i) {
    const int symbol = stream.draw(random, s.temperature);
    written += text.alphabet[static_cast<std::size_t>(symbol)];
    stream.read(symbol);
  }
  return written;
}

template <class Model>
Result train(const Settings& s, const Text& text, const std::string& kind,
             const ModelOptions& options, Model model) {
  using Clock = std::chrono::steady_clock;
  fw::Random random(s.seed);
  fw::initialise(model, random);
  fw::AdamW<Model> optimiser(model, {.clip = s.clip});
  const fw::WarmupCosine rate{
      .peak = s.rate, .warmup = s.steps / 20, .total = s.steps, .floor = s.rate / 100};
  Trainer<Model> trainer(model, s.batch, s.length);
  Result result{kind, fw::parameter_count(model), 0, 0, {}, {}};
  Progress progress(kind, s.steps);
  const long first = load_checkpoint(s, kind, model, optimiser);
  double in_steps = 0;
  for (long step = first; step < s.steps; ++step) {
    const auto start = Clock::now();
    fw::Random draws(s.seed * 1000003 +
                     static_cast<std::uint64_t>(step));  // so that resuming repeats them
    const double loss = trainer.gradient(model, text, draws) / nats_per_bit;
    optimiser.step(model, trainer.gradient(), rate(step));
    in_steps += std::chrono::duration<double>(Clock::now() - start).count();
    const long done = step + 1;
    if (done % s.evaluate_every == 0 || done == s.steps)
      result.curve.push_back(
          {done, loss, trainer.loss(model, text.validation(), 64) / nats_per_bit});
    if (done % s.checkpoint_every == 0 || done == s.steps)
      save_checkpoint(s, {kind, text.alphabet, options, done}, model, optimiser);
    char note[64];
    std::snprintf(note, sizeof note, "%.2f bits", loss);
    progress.show(done, note);
  }
  result.validation = trainer.loss(model, text.validation()) / nats_per_bit;
  result.seconds_per_step = in_steps / static_cast<double>(std::max(1L, s.steps - first));
  result.sample = write_sample(s, text, model);
  return result;
}

void print_table(const Settings& s, const Text& text, const std::vector<Result>& results) {
  std::printf(
      "\nValidation bits per character after %ld steps of %ld x %ld characters, seed %llu\n\n",
      s.steps, s.batch, s.length, static_cast<unsigned long long>(s.seed));
  std::printf(
      "| model | parameters | bits per character | seconds per step |\n|---|---|---|---|\n");
  for (const Result& r : results)
    for (const ModelKind& kind : model_kinds)
      if (kind.key == r.kind)
        std::printf("| %s | %lld | %.3f | %.4f |\n", kind.title.c_str(),
                    static_cast<long long>(r.parameters), r.validation, r.seconds_per_step);
  std::printf("| unigram entropy | | %.3f | |\n\n", unigram_entropy(text.validation()));
}

void write_curves(const Settings& s, const Text& text, const std::vector<Result>& results) {
  const auto folder = std::filesystem::path(s.output);
  std::string curves;
  for (const Result& r : results) {
    const auto file = folder / (r.kind + ".csv");
    std::ofstream out(file);
    out << "step,train_bits,validation_bits\n";
    for (const Point& p : r.curve) out << p.step << "," << p.train << "," << p.validation << "\n";
    for (const ModelKind& kind : model_kinds)
      if (kind.key == r.kind)
        curves += "'" + file.string() +
                  "' using 1:3 skip 1 with linespoints pt 7 ps 0.5 lw 2 title '" + kind.title +
                  "', ";
  }
  plot(folder / "curves.png",
       "set datafile separator ','\nset xlabel 'training step'\nset ylabel 'validation bits per "
       "character'\nset grid\nset key top right\nplot [0:][:4.6] " +
           curves + std::to_string(unigram_entropy(text.validation())) +
           " with lines dt 2 lc 'gray40' title 'unigram entropy'\n");
}

Settings parse(int argc, char** argv) {
  Settings s;
  CLI::App app("Character-level language models around four memories");
  app.add_option("--text", s.text, "the text")->envname("FASTWEIGHTS_TEXT")->capture_default_str();
  app.add_option("--output", s.output, "folder of checkpoints, curves and picture")
      ->capture_default_str();
  app.add_option("--models", s.models, "of sum, delta, delta-elu, softmax; all by default")
      ->delimiter(',');
  const auto* steps = app.add_option("--steps", s.steps, "training steps")->capture_default_str();
  app.add_option("--batch", s.batch, "windows a step")->capture_default_str();
  app.add_option("--length", s.length, "characters a window")->capture_default_str();
  app.add_option("--layers", s.layers, "blocks")->capture_default_str();
  app.add_option("--heads", s.heads, "heads of 32; the width is their sum")->capture_default_str();
  app.add_option("--rate", s.rate, "peak learning rate")->capture_default_str();
  app.add_option("--seed", s.seed, "of weights, windows and samples")->capture_default_str();
  app.add_option("--prompt", s.prompt, "what the models go on from")->capture_default_str();
  app.add_option("--generate", s.generate, "characters they write")->capture_default_str();
  app.add_option("--temperature", s.temperature, "of their writing")->capture_default_str();
  app.add_flag("--resume", s.resume, "go on from the checkpoints in the output folder");
  app.add_flag("--quick", s.quick, "a demonstration of two minutes");
  app.add_flag("--smoke", s.smoke, "a few steps, to see that it runs");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error));
  }
  if (s.quick && steps->empty()) s.steps = 500;
  if (s.smoke) s.steps = 6, s.evaluate_every = 3, s.generate = 20;
  if (s.models.empty())
    for (const ModelKind& kind : model_kinds) s.models.push_back(kind.key);
  return s;
}

}  // namespace

int main(int argc, char** argv) try {
  const Settings s = parse(argc, argv);
  Eigen::setNbThreads(1);  // the shards are what runs in parallel
  const Text text = read_text(s.text);
  std::filesystem::create_directories(s.output);
  std::printf("%s: %zu characters, %d symbols\n", s.text.c_str(), text.symbols.size(), text.size());
  const ModelOptions options{text.size(), s.layers, s.heads, s.length};
  std::vector<Result> results;
  for (const std::string& kind : s.models)
    results.push_back(with_model(
        kind, options, [&](const auto& model) { return train(s, text, kind, options, model); }));
  for (const Result& r : results)
    std::printf("\n%s writes:\n%s\n", r.kind.c_str(), r.sample.c_str());
  print_table(s, text, results);
  write_curves(s, text, results);
} catch (const std::exception& error) {
  std::cerr << "char_lm: " << error.what() << "\n";
  return 1;
}
