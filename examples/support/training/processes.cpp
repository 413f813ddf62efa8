#include "training/processes.hpp"

#ifdef FASTWEIGHTS_EXAMPLES_MPI

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fastweights/mpi/training.hpp>

namespace {

// The variables by which Open MPI, MPICH and Slurm tell a process that they started it.
bool is_started_by_mpirun() {
  return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr || std::getenv("PMI_SIZE") != nullptr ||
         std::getenv("PMIX_RANK") != nullptr;
}

}  // namespace

Processes::Processes() {
  if (!is_started_by_mpirun()) return;
  int given = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &given);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &count_);
  if (!is_first() && std::freopen("/dev/null", "w", stdout) == nullptr)
    std::perror("/dev/null");  // it then prints
}

Processes::~Processes() {
  if (is_started_by_mpirun()) MPI_Finalize();
}

void Processes::abort() const {
  if (count_ > 1) MPI_Abort(MPI_COMM_WORLD, 1);
}

void Processes::join(fw::Trainer<AnyModel<float>>& trainer) const {
  if (count_ > 1) fw::mpi::join(trainer, MPI_COMM_WORLD);
}

Score Processes::sum(const Score& mine) const {
  if (count_ == 1) return mine;
  std::array<long, 4> counts{mine.examples, mine.answers, mine.right, mine.complete};
  double loss = mine.loss;
  MPI_Allreduce(MPI_IN_PLACE, counts.data(), 4, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, &loss, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return {loss, counts[0], counts[1], counts[2], counts[3]};
}

#else

Processes::Processes() = default;
Processes::~Processes() = default;
void Processes::abort() const {}
void Processes::join(fw::Trainer<AnyModel<float>>&) const {}
Score Processes::sum(const Score& mine) const { return mine; }

#endif
