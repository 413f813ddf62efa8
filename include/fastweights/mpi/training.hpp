#pragma once

#include <fastweights/layers/parameters.hpp>
#include <fastweights/mpi/gradient_sum.hpp>
#include <fastweights/training/trainer.hpp>

/// \file
/// One model over the ranks of MPI, each with its share of every batch. All ranks have the same
/// weights and optimiser, and step along the same gradient, the sum of theirs:
///
///     fw::Trainer trainer(model, {.shards = 1});
///     fw::mpi::join(trainer, MPI_COMM_WORLD);
///     trainer.train(steps, rate, job, after_step);   // job(step, shard, gradient): this rank's
///                                                    // share, over the divisor of the whole batch
///
/// Checkpoints are those of one process: the first rank writes and reads them, and join() gives the
/// others what it read. Any number of ranks continues from them. The options of the optimiser must
/// be the same on all ranks. A rank whose job throws has to end the program, by MPI_Abort: the
/// others wait for its gradient.

namespace fw::inline FASTWEIGHTS_ABI::mpi {

/// Every parameter becomes its sum over the ranks, for example that of a gradient. Ranks are added
/// in their order, so the bits depend neither on the MPI library nor on the network. With N bytes
/// of parameters a rank sends 2 N (P − 1) / P. Throws std::invalid_argument on every rank if the
/// shapes of parameters differ.
template <Record Model> void sum_parameters(Model& model, MPI_Comm comm) {
  const Ranks ranks(comm);
  ranks.agree("mpi::sum_parameters", {{"the parameters", detail::shapes_of(model)}}, [] {});
  GradientSum sum(comm);
  sum.add(model);
  sum.finish();
}

/// The sum over the ranks, in their order: of losses, for example.
inline double sum(double mine, MPI_Comm comm) {
  const Ranks ranks(comm);
  std::vector<double> all(static_cast<std::size_t>(ranks.size()));
  detail::check(MPI_Allgather(&mine, 1, MPI_DOUBLE, all.data(), 1, MPI_DOUBLE, comm),
                "MPI_Allgather");
  double whole = 0;
  for (const double each : all) whole += each;
  return whole;
}

/// All numbers of a model, a state or an optimiser become those of rank `root`. Throws
/// std::invalid_argument on every rank if the shapes differ. Caches that grow get the room that
/// they have there.
inline void broadcast(const fw::detail::Object& record, MPI_Comm comm, int root = 0) {
  const Ranks ranks(comm);
  ranks.agree("mpi::broadcast", {{"the arrays", detail::shapes_of(record)}}, [] {});
  fw::detail::move_record(record, [&](const fw::detail::Object& part) {
    detail::for_each_block(
        part, [&](std::byte* data, Index bytes) { ranks.broadcast(data, bytes, root); });
  });
}
/// Sends any record.
template <Record R> void broadcast(R& record, MPI_Comm comm, int root = 0) {
  broadcast(fw::detail::object(record), comm, root);
}

/// Gives all ranks the weights and the optimiser of the first one, and lets `trainer` sum gradients
/// over the ranks before each step. The bits are those of one process with as many shards as there
/// are ranks, if every rank has one shard. A step's loss is that of this rank's share.
template <Record Model> void join(Trainer<Model>& trainer, MPI_Comm comm) {
  broadcast(trainer.model(), comm);
  broadcast(trainer.optimiser(), comm);
  trainer.before_step = [comm](Model& gradient) { sum_parameters(gradient, comm); };
}

/// Trains over the ranks of `sum`, for a job that adds its gradient while its backward pass goes
/// on: one shard, and one backward pass a step, with sum.adder(). `sum` must live as long as the
/// trainer steps. Throws std::invalid_argument for more shards; step() does so if the job has not
/// added all of the gradient.
template <Record Model> void join(Trainer<Model>& trainer, GradientSum& sum) {
  if (trainer.shards() != 1)
    fw::detail::throw_mismatch("mpi::join", "the trainer", trainer.shards(), "shards", 1,
                               "a sum that continues during backward");
  join(trainer, sum.comm());
  trainer.before_step = [&sum](Model& gradient) { sum.finish(parameter_count(gradient)); };
}

}  // namespace fw::mpi
