// One sequence over the ranks of MPI against one of them alone, in turns.
//
//     mpirun -n 2 build/release/benchmarks/mpi_scan D HEADS TOKENS ROUNDS [chain]
//
// The delta rule in float, forward by each method, and with backward; with "chain" only forward by
// that method, which takes the least memory. Every rank holds TOKENS / P tokens; alone, the first
// rank works through its own part P times while the others sleep. The table has medians; "model" is
// the ratio by fw::mpi::seconds for messages that take no time.

#include <cstdio>
#include <cstdlib>
#include <string>

#include "mpi/scan_run.hpp"

namespace {

using fw::Index;
using fw::mpi::Method;

// The speed relative to one rank.
double model_ratio(Method method, Index heads, Index ranks) {
  const fw::mpi::Machine machine{.latency = 0, .bytes_per_second = 1e30};
  const fw::mpi::Work work{.heads = static_cast<double>(heads),
                           .ranks = static_cast<double>(ranks),
                           .tokens = 1,
                           .token_flops = 1,
                           .token_bytes = 0,
                           .state_bytes = 0};
  return work.heads * work.ranks / machine.flops_per_second /
         fw::mpi::seconds(method, work, machine);
}

}  // namespace

int main(int argc, char** argv) {
  int given = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &given);
  const fw::mpi::Ranks ranks(MPI_COMM_WORLD);
  const auto argument = [&](int i, long otherwise) {
    return argc > i ? std::atol(argv[i]) : otherwise;
  };
  const Index d = argument(1, 128), heads = argument(2, 8), tokens = argument(3, 1 << 16);
  const Index size = ranks.size();
  ScanRun run(d, heads, tokens / size);
  const auto measure = [&](const char* pass, auto work, Method method) {
    std::vector<double> alone, together;
    for (long round = 0; round < argument(4, 5); ++round) {
      alone.push_back(seconds_of([&] {
        if (ranks.is_first())
          for (Index i = 0; i < size; ++i) work(MPI_COMM_SELF, Method::chain);
      }));
      together.push_back(seconds_of([&] { work(MPI_COMM_WORLD, method); }));
    }
    const double ratio = machine::median(alone) / machine::median(together),
                 model = model_ratio(method, heads, size);
    if (ranks.is_first())
      std::printf("| %s | %s | %.3f | %.3f | %.2f | %.2f | %.2f |\n", pass, name_of(method),
                  machine::median(alone), machine::median(together), ratio, model, ratio / model);
  };
  if (ranks.is_first())
    std::printf(
        "delta rule, d = %td, %td heads, %td tokens, %td ranks\n\n| pass | method | alone, s | "
        "together, s | ratio | model | of the model |\n|---|---|---:|---:|---:|---:|---:|\n",
        d, heads, tokens, size);
  const auto scan = [&](MPI_Comm comm, Method method) { run.scan(comm, method); };
  const auto both = [&](MPI_Comm comm, Method method) { run.backward(comm, method); };
  measure("scan", scan, Method::chain);
  if (argc <= 5 || std::string(argv[5]) != "chain") {
    measure("scan", scan, Method::heads);
    measure("scan", scan, Method::segments);
    measure("scan and backward", both, Method::chain);
  }
  MPI_Finalize();
}
