// A step of training a language model around the delta rule: forward, backward and AdamW.
//
//     build/release/benchmarks/training_step LAYERS HEADS THREADS SECONDS   # heads of 32
//
// Prints seconds a step, the median of as many as fit into SECONDS. script/bench training compares
// with PyTorch.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fastweights/training/losses.hpp>
#include <fastweights/training/trainer.hpp>

#include "char_model.hpp"
#include "machine.hpp"

namespace {

using char_model::Model;
using fw::Index;
constexpr Index batch = 16, length = 128;

struct Buffers {
  Model::Trace trace;
  Eigen::MatrixXf logits;
};

}  // namespace

int main(int argc, char** argv) {
  const auto argument = [&](int i, int otherwise) {
    return argc > i ? std::atoi(argv[i]) : otherwise;
  };
  const int threads = argument(3, 2);
  machine::use_threads(threads);
  Eigen::setNbThreads(1);  // the shards run in parallel
  Model model = char_model::make(argument(1, 2), argument(2, 4));
  fw::Trainer trainer(model, {.optimiser = {.clip = 1}, .shards = threads});
  std::vector<Buffers> buffers(static_cast<std::size_t>(threads));
  const auto ids = char_model::random_ids(batch * length + 1);
  const Index share = batch / threads;

  const auto job = [&](long long, Index shard, Model& gradient) {
    Buffers& b = buffers[static_cast<std::size_t>(shard)];
    const auto first = ids.begin() + shard * share * length;
    const fw::Symbols inputs(first, first + share * length), targets(first + 1, inputs.size());
    b.logits.resize(char_model::symbols, share * length);
    auto state = model.initial_state(share);
    model.forward(state, inputs, b.logits, b.trace, fw::Pass::train);
    const float loss =
        fw::cross_entropy(b.logits, targets, b.logits, {.divisor = double(batch * length)});
    model.backward(b.trace, b.logits, gradient);
    return static_cast<double>(loss);
  };
  std::vector<double> seconds;
  double total = 0;
  const double limit = argument(4, 5);
  while (total < limit)
    trainer.train(
        trainer.optimiser().steps + 1, [](long long) { return 1e-3; }, job,
        [&](const fw::TrainingStep& s) {
          total += s.seconds;
          seconds.push_back(s.seconds);
        });
  std::printf("%.5f seconds a step, %td parameters\n", machine::median(seconds),
              fw::parameter_count(model));
}
