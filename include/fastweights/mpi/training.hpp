#pragma once

#include <fastweights/layers/parameters.hpp>
#include <fastweights/mpi/chain.hpp>
#include <fastweights/training/trainer.hpp>
#include <limits>

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
/// others what it read. Any number of ranks goes on from them. The options of the optimiser must be
/// the same on all ranks. A rank whose job throws has to end the program, by MPI_Abort: the others
/// wait for its gradient.

namespace fw::inline FASTWEIGHTS_ABI::mpi {

namespace detail {

template <class S> MPI_Datatype type_of() {
  static_assert(std::is_same_v<S, float> || std::is_same_v<S, double>);
  return std::is_same_v<S, float> ? MPI_FLOAT : MPI_DOUBLE;
}

// The sum over all ranks, in their order. Every rank sums a slice of the numbers.
template <class S> void sum_in_order(const Ranks& ranks, std::vector<S>& numbers) {
  const auto size = static_cast<std::size_t>(ranks.size());
  const std::size_t slice = (numbers.size() + size - 1) / size, count = numbers.size();
  if (slice > static_cast<std::size_t>(std::numeric_limits<int>::max()))
    fw::detail::throw_invalid({"mpi: ", std::to_string(count), " parameters are too many"});
  numbers.resize(slice * size);
  std::vector<S> slices(numbers.size());
  check(MPI_Alltoall(numbers.data(), static_cast<int>(slice), type_of<S>(), slices.data(),
                     static_cast<int>(slice), type_of<S>(), ranks.comm()),
        "MPI_Alltoall");
  using Array = Eigen::Map<Eigen::Array<S, Eigen::Dynamic, 1>>;
  const auto part = [&](std::size_t i) {
    return Array(slices.data() + i * slice, static_cast<Index>(slice));
  };
  for (std::size_t i = 1; i < size; ++i) part(0) += part(i);
  check(MPI_Allgather(slices.data(), static_cast<int>(slice), type_of<S>(), numbers.data(),
                      static_cast<int>(slice), type_of<S>(), ranks.comm()),
        "MPI_Allgather");
  numbers.resize(count);
}

}  // namespace detail

/// Every parameter becomes its sum over the ranks, for example that of a gradient. Ranks are added
/// in their order, so the bits depend neither on the MPI library nor on the network. With N bytes
/// of parameters a rank sends 2 N (P − 1) / P. Throws std::invalid_argument on every rank if the
/// numbers of parameters differ.
template <Record Model> void sum_parameters(Model& model, MPI_Comm comm) {
  using S = fw::detail::ParameterScalar<Model>;
  const Ranks ranks(comm);
  ranks.agree("mpi::sum_parameters", "the number of parameters", parameter_count(model), [] {});
  std::vector<S> numbers;
  const auto visit = [&](const auto& f) {
    fw::detail::visit_parameters<S>(std::array{fw::detail::object(model)}, f);
  };
  visit([&](const fw::detail::Leaf* leaf) {
    const auto entries = leaf->entries<S>();
    numbers.insert(numbers.end(), entries.data(), entries.data() + entries.size());
  });
  detail::sum_in_order(ranks, numbers);
  const S* next = numbers.data();
  visit([&](const fw::detail::Leaf* leaf) {
    auto entries = leaf->entries<S>();
    std::copy_n(next, entries.size(), entries.data());
    next += entries.size();
  });
}

/// All numbers of a model, a state or an optimiser become those of rank `root`. Throws
/// std::invalid_argument on every rank if the sizes differ.
template <Record R> void broadcast(R& record, MPI_Comm comm, int root = 0) {
  const Ranks ranks(comm);
  ranks.agree("mpi::broadcast", "the number of bytes", detail::bytes_of(record), [] {});
  detail::for_each_block(record,
                         [&](std::byte* data, Index bytes) { ranks.broadcast(data, bytes, root); });
}

/// Gives all ranks the weights and the optimiser of the first one, and lets `trainer` sum gradients
/// over the ranks before each step. The bits are those of one process with as many shards as there
/// are ranks, if every rank has one shard. A step's loss is that of this rank's share.
template <Record Model> void join(Trainer<Model>& trainer, MPI_Comm comm) {
  broadcast(trainer.model(), comm);
  broadcast(trainer.optimiser(), comm);
  trainer.before_step = [comm](Model& gradient) { sum_parameters(gradient, comm); };
}

}  // namespace fw::mpi
