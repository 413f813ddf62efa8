// Training over ranks in which a rank dies, and that continues from the last checkpoint with
// another number of ranks: against one process without interruption.

#include <csignal>
#include <fastweights/io/training.hpp>
#include <fastweights/mpi/training.hpp>

#include "mpi/memories.hpp"
#include "mpi/model.hpp"
#include "mpi/parts.hpp"

namespace mpi_test {
namespace {

constexpr int batch = 6;
constexpr long long saved_at = 3, dies_at = 4, steps = 8;

// The rank's share of a batch.
double run_share(const fw::mpi::Ranks& ranks, const Model& model, long long step, Model& gradient) {
  double loss = 0;
  for (int place = ranks.rank(); place < batch; place += ranks.size())
    loss += run(model, step, place, batch, gradient);
  return loss;
}

}  // namespace

void train_and_die(const std::string& path) {
  const fw::mpi::Ranks ranks(MPI_COMM_WORLD);
  Model model = drawn_model(1);
  fw::Trainer<Model> trainer(model, {.shards = 1});
  fw::mpi::join(trainer, MPI_COMM_WORLD);
  trainer.train(
      steps, [](long long) { return 1e-2; },
      [&](long long step, Index, Model& gradient) {
        if (step == dies_at && ranks.is_last()) std::raise(SIGKILL);
        return run_share(ranks, model, step, gradient);
      },
      [&](const fw::TrainingStep& step) {
        if (step.step == saved_at && ranks.is_first())
          fw::io::save_training(model, trainer.optimiser(), path);
      });
}

void go_on_training(const std::string& path) {
  const fw::mpi::Ranks ranks(MPI_COMM_WORLD), one(MPI_COMM_SELF);
  Model alone = drawn_model(1), model = drawn_model(2);
  fw::Trainer<Model> whole(alone, {.shards = 1}), trainer(model, {.shards = 1});
  train(whole, steps, [&](long long step, Index, Model& gradient) {
    return run_share(one, alone, step, gradient);
  });
  if (ranks.is_first()) fw::io::load_training(model, trainer.optimiser(), path);
  fw::mpi::join(trainer, MPI_COMM_WORLD);
  expect(trainer.optimiser().steps == saved_at, "all ranks continue from the checkpoint");
  train(trainer, steps, [&](long long step, Index, Model& gradient) {
    return run_share(ranks, model, step, gradient);
  });
  const double apart = largest_difference(model, alone);
  if (ranks.is_first())
    std::printf(
        "mpi training that went on after a rank had died, %d ranks: %.1e from one process\n",
        ranks.size(), apart);
  expect(apart <= 1e-4, "the same as without interruption");
}

}  // namespace mpi_test
