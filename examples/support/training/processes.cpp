#include "training/processes.hpp"

#include <iostream>

int Processes::run(const char* program, const std::function<int()>& work) const try {
  return work();
} catch (const std::exception& error) {
  std::cerr << program << ": " << error.what() << "\n";
  abort();
  return 1;
}

#ifdef FASTWEIGHTS_EXAMPLES_MPI

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fastweights/mpi/sequence_parallel.hpp>
#include <fastweights/mpi/training.hpp>
#include <numeric>
#include <thread>

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

// MPI itself waits without leaving the processor to others.
void Processes::wait_for_all() const {
  if (count_ == 1) return;
  MPI_Request request;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  for (int done = 0; !done; std::this_thread::sleep_for(std::chrono::milliseconds(1)))
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
}

Processes::~Processes() {
  sums_.reset();  // before MPI ends
  wait_for_all();
  if (is_started_by_mpirun()) MPI_Finalize();
}

void Processes::abort() const {
  if (count_ > 1) MPI_Abort(MPI_COMM_WORLD, 1);
}

void Processes::join(fw::Trainer<AnyModel<float>>& trainer) const {
  if (count_ > 1) fw::mpi::join(trainer, MPI_COMM_WORLD);
}

double Processes::sum(double mine) const {
  return count_ == 1 ? mine : fw::mpi::sum(mine, MPI_COMM_WORLD);
}

double Processes::largest(double mine) const {
  if (count_ > 1) MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return mine;
}

std::vector<float> Processes::join(const std::vector<float>& mine) const {
  if (count_ == 1) return mine;
  const int size = static_cast<int>(mine.size());
  std::vector<int> sizes(static_cast<std::size_t>(count_)), places(sizes);
  MPI_Gather(&size, 1, MPI_INT, sizes.data(), 1, MPI_INT, 0, MPI_COMM_WORLD);
  std::exclusive_scan(sizes.begin(), sizes.end(), places.begin(), 0);
  std::vector<float> all(static_cast<std::size_t>(std::accumulate(sizes.begin(), sizes.end(), 0)));
  MPI_Gatherv(mine.data(), size, MPI_FLOAT, all.data(), sizes.data(), places.data(), MPI_FLOAT, 0,
              MPI_COMM_WORLD);
  return all;
}

void Processes::broadcast(const fw::detail::Object& record, int root) const {
  if (count_ > 1) fw::mpi::broadcast(record, MPI_COMM_WORLD, root);
}

void Processes::run_round_robin(long parts,
                                const std::function<void(long, fw::SequenceParallel&)>& run) const {
  if (count_ > 1) return fw::mpi::run_round_robin(MPI_COMM_WORLD, parts, run);
  Whole whole;
  for (long part = 0; part < parts; ++part) run(part, whole);
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
double Processes::sum(double mine) const { return mine; }
double Processes::largest(double mine) const { return mine; }
std::vector<float> Processes::join(const std::vector<float>& mine) const { return mine; }
void Processes::broadcast(const fw::detail::Object&, int) const {}
void Processes::run_round_robin(long parts,
                                const std::function<void(long, fw::SequenceParallel&)>& run) const {
  Whole whole;
  for (long part = 0; part < parts; ++part) run(part, whole);
}

#endif
