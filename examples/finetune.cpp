// Goes on training a published language model on a text, and writes a folder like the one it came
// from, which transformers and run_model can read.
//
//   build/release/examples/finetune FOLDER --text build/text/kjv.txt --output build/finetuned
//
// `mpirun -n 2 build/release/examples/finetune …` shares every batch between two processes.

#include <cstdio>
#include <fastweights/models/checkpoint.hpp>
#include <fastweights/models/model.hpp>
#include <fastweights/models/save.hpp>
#include <fastweights/models/table/groups.hpp>
#include <fastweights/models/tokenizer.hpp>
#include <fastweights/training/losses.hpp>
#include <fastweights/training/schedule.hpp>
#include <fastweights/training/trainer.hpp>
#include <fstream>
#include <iostream>
#include <iterator>

#include "published/shapes.hpp"
#include "report/command_line.hpp"
#include "report/files.hpp"
#include "training/denormals.hpp"
#include "training/processes.hpp"
#include "training/progress.hpp"

namespace {

using fw::Index;
using Network = fw::networks::Network<float>;

constexpr long most_tokens = 1 << 24;

struct Settings {
  std::string folder, text = "build/text/kjv.txt", output = "build/finetuned";
  long steps = 100, batch = 4, length = 128;
  double rate = 1e-4, clip = 1;
  std::uint64_t seed = 1;
  bool smoke = false;
};

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read '" + path + "'; script/parts/text writes one");
  return {std::istreambuf_iterator<char>(file), {}};
}

// Windows of a text at random places, one behind the other: those of a batch that are this
// process's.
class Windows {
 public:
  Windows(std::vector<int> ids, const Settings& s, const Processes& processes)
      : ids_(std::move(ids)),
        batch_(s.batch),
        length_(s.length),
        random_(s.seed),
        processes_(processes) {
    if (batch_ < processes_.count())
      throw std::invalid_argument("--batch is " + std::to_string(batch_) +
                                  ", expected at least one window for each of " +
                                  std::to_string(processes_.count()) + " processes");
    if (static_cast<long>(ids_.size()) <= length_)
      throw std::invalid_argument("the text has " + std::to_string(ids_.size()) +
                                  " tokens, expected more than --length");
  }

  void draw() {
    inputs.clear();
    targets.clear();
    for (long b = 0; b < batch_; ++b) {
      const auto places = ids_.size() - static_cast<std::size_t>(length_);
      const auto first = ids_.begin() + static_cast<std::ptrdiff_t>(random_.below(places));
      if (processes_.owner_of(b) != processes_.rank()) continue;
      inputs.insert(inputs.end(), first, first + length_);
      targets.insert(targets.end(), first + 1, first + 1 + length_);
    }
  }

  Index count() const { return static_cast<Index>(inputs.size()) / length_; }

  std::vector<int> inputs, targets;

 private:
  std::vector<int> ids_;
  long batch_, length_;
  fw::Random random_;
  const Processes& processes_;
};

// Prints the loss in nats a token; returns that of the last step.
double train(Network& network, Windows& windows, const Settings& s, Processes& processes) {
  fw::Trainer trainer(
      network, {.optimiser = {.weight_decay = 0, .clip = s.clip}, .shards = 1});  // one gradient
  const fw::GradientReady ready = processes.join(trainer);
  Progress progress("training", s.steps);
  Network::Trace trace;
  Eigen::MatrixXf logits;
  double loss = 0;
  trainer.train(
      s.steps, fw::WarmupCosine{.peak = s.rate, .warmup = s.steps / 10, .total = s.steps},
      [&](long long, Index, Network& gradient) {
        windows.draw();
        fw::networks::State state = network.initial_state(windows.count());
        logits.resize(network.outputs(), windows.count() * s.length);
        network.forward(state, fw::Symbols(windows.inputs), logits, trace, fw::Pass::train);
        const float mean = fw::cross_entropy(logits, windows.targets, logits,
                                             {.divisor = static_cast<double>(s.batch * s.length)});
        network.backward(trace, logits, gradient, ready);
        return double{mean};
      },
      [&](const fw::TrainingStep& step) {
        loss = processes.sum(step.loss);
        if (processes.is_first())
          progress.show(static_cast<long>(step.step), "loss " + std::to_string(loss));
      });
  std::printf("loss after %ld steps: %.4f nats a token\n", s.steps, loss);
  return loss;
}

int run(const Settings& s, Processes& processes) {
  const auto folder = fw::models::Checkpoint::read(s.folder);
  fw::models::check_output(folder, s.output);  // before the training, not after it
  if (processes.is_first()) make_folder(s.output);
  const auto tokenizer = fw::models::Tokenizer::read(folder.folder() / "tokenizer.json");
  Network network = fw::models::load<float>(s.folder, {.context = s.length});
  Windows windows(tokenizer.encode(content_of(s.text)), s, processes);
  train(network, windows, s, processes);
  if (processes.is_first()) fw::models::save_folder(network, folder, s.output);
  std::printf("written to %s\n", s.output.c_str());
  return 0;
}

// A tiny model learns a sequence of two symbols by heart.
int smoke(Settings s, Processes& processes) {
  Network network =
      fw::models::architectures<float>().build(published_shape("tiny"), {.context = s.length});
  fw::Random random(s.seed);
  network.initialise(random);
  std::vector<int> ids;
  for (int i = 0; i < 200; ++i) ids.push_back(i % 2);
  s.steps = 100;
  s.length = 16;
  s.rate = 3e-3;
  Windows windows(std::move(ids), s, processes);
  return train(network, windows, s, processes) < 0.5 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
  flush_denormals();
  Settings s;
  CommandLine app("Goes on training a published language model on a text");
  const Option folder =
      app.add_option("folder", s.folder, "with config.json, weights and tokenizer.json");
  app.add_option("--text", s.text, "what to train on").show_default();
  app.add_option("--output", s.output, "the folder to write").show_default();
  app.add_positive("--steps", s.steps, "of training");
  app.add_positive("--batch", s.batch, "windows in a step").at_most(most_tokens);
  app.add_positive("--length", s.length, "tokens of a window").at_most(most_tokens);
  app.add_option("--rate", s.rate, "the learning rate").not_negative().show_default();
  app.add_positive("--clip", s.clip, "upper limit of the gradient's norm");
  app.add_option("--seed", s.seed, "of the windows").show_default();
  const Option is_smoke = app.add_flag("--smoke,--quick", s.smoke, "a tiny random model");
  app.parse(argc, argv);
  if (!is_smoke.given() && !folder.given()) {
    std::cerr << "finetune: name a folder\n";
    return 1;
  }
  Processes processes;
  return processes.run("finetune",
                       [&] { return is_smoke.given() ? smoke(s, processes) : run(s, processes); });
} catch (const std::exception& error) {
  std::cerr << "finetune: " << error.what() << "\n";
  return 1;
}
