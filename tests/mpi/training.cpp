// A model that ranks train together against one process with as many shards.

#include <fastweights/mpi/training.hpp>

#include "mpi/memories.hpp"
#include "mpi/model.hpp"
#include "mpi/parts.hpp"

namespace mpi_test {
namespace {

constexpr long long steps = 4;

// The model after training by one process with a shard for each of `ranks`.
Model trained_alone(int ranks) {
  Model model = drawn_model(1);
  fw::Trainer<Model> trainer(model, {.optimiser = {.clip = 1}, .shards = ranks});
  train(trainer, steps, [&](long long step, Index shard, Model& gradient) {
    return run(model, step, shard, ranks, gradient);
  });
  return model;
}

// The same by all ranks. Their models differ until they join.
Model trained_together(const fw::mpi::Ranks& ranks) {
  Model model = drawn_model(static_cast<std::uint64_t>(1 + ranks.rank()));
  fw::Trainer<Model> trainer(model, {.optimiser = {.clip = 1}, .shards = 1});
  fw::mpi::join(trainer, ranks.comm());
  train(trainer, steps, [&](long long step, Index, Model& gradient) {
    return run(model, step, ranks.rank(), ranks.size(), gradient);
  });
  expect(trainer.optimiser().steps == steps, "the number of steps");
  return model;
}

// The same with gradients that are summed while backward continues, in messages of `least` bytes.
Model trained_overlapping(const fw::mpi::Ranks& ranks, fw::mpi::SummationOrder order, Index least) {
  Model model = drawn_model(static_cast<std::uint64_t>(1 + ranks.rank()));
  fw::Trainer<Model> trainer(model, {.optimiser = {.clip = 1}, .shards = 1});
  fw::mpi::GradientSum sum(ranks.comm(), order, least);
  fw::mpi::join(trainer, sum);
  train(trainer, steps, [&](long long step, Index, Model& gradient) {
    return run(model, step, ranks.rank(), ranks.size(), gradient, sum.adder());
  });
  return model;
}

}  // namespace

void check_training() {
  const fw::mpi::Ranks ranks(MPI_COMM_WORLD);
  const Model alone = trained_alone(ranks.size());
  const double together = largest_difference(trained_together(ranks), alone);
  double overlapping = 0, any = 0;
  for (const Index least : {Index{1}, Index{1000}, fw::mpi::GradientSum::default_least}) {
    const auto difference = [&](fw::mpi::SummationOrder order) {
      return largest_difference(trained_overlapping(ranks, order, least), alone);
    };
    overlapping = std::max(overlapping, difference(fw::mpi::SummationOrder::ranks));
    any = std::max(any, difference(fw::mpi::SummationOrder::any));
  }
  if (ranks.is_first())
    std::printf(
        "mpi training of %td parameters, %d ranks: from one process %g, summed during backward %g, "
        "in any order %.1e\n",
        fw::parameter_count(alone), ranks.size(), together, overlapping, any);
  expect(together == 0 && overlapping == 0, "the same bits as training in one process");
  expect(any <= 1e-4, "sums in any order");
}

}  // namespace mpi_test
