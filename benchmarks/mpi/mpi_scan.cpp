// One sequence over the ranks of MPI against one of them alone, in turns.
//
//     mpirun -n 2 build/release/benchmarks/mpi_scan D HEADS TOKENS ROUNDS
//
// The delta rule in float, forward by each method, and with backward. Every rank holds TOKENS / P
// tokens; alone, the first rank works through its own part P times while the others sleep. The
// table has medians; "model" is H P over the time that fw::mpi::Method gives.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fastweights/math/random.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/mpi/backward.hpp>

#include "machine.hpp"

namespace {

using fw::Index;
using fw::mpi::Method;
using Memory = fw::DeltaRule<float>;
using State = fw::StateOf<Memory>;

// Unlike MPI_Barrier it leaves the processor to the others.
void wait_for_all() {
  MPI_Request request;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  for (int done = 0; !done; usleep(100)) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
}

template <class F> double seconds_of(const F& f) {
  wait_for_all();
  const double start = machine::wall_clock();
  f();
  wait_for_all();
  return machine::wall_clock() - start;
}

class Benchmark {
 public:
  Benchmark(Index d, Index heads, Index steps)
      : m_({.key_size = d}), states_(static_cast<std::size_t>(heads), fw::initial_state(m_)) {
    fw::Random random(1);
    const Index columns = heads * steps;
    for (auto* each : {&k_, &v_, &q_, &y_}) each->resize(d, columns);
    for (auto* each : {&k_, &v_, &q_}) random.fill(*each);
    k_.colwise().normalize();
    beta_.setConstant(columns, 0.5f);
  }

  void scan(MPI_Comm comm, Method method) {
    fw::mpi::scan(m_, std::span(states_), {k_, v_, beta_}, {q_}, {y_}, comm, method);
  }
  // The outputs are their own gradients.
  void backward(MPI_Comm comm, Method method) {
    checkpoints_.resize(states_.size());
    for (auto* each : {&dk_, &dv_, &dq_}) each->setZero(k_.rows(), k_.cols());
    dbeta_.setZero(k_.cols());
    fw::mpi::scan(m_, std::span(states_), {k_, v_, beta_}, {q_}, {y_}, std::span(checkpoints_),
                  comm, method);
    fw::mpi::backward(m_, std::span(checkpoints_), {k_, v_, beta_}, {q_}, {y_}, std::span(states_),
                      {dk_, dv_, dbeta_}, {dq_}, comm);
  }

 private:
  Memory m_;
  std::vector<State> states_;
  std::vector<fw::Checkpoints<Memory>> checkpoints_;
  Eigen::MatrixXf k_, v_, q_, y_, dk_, dv_, dq_;
  Eigen::RowVectorXf beta_, dbeta_;
};

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
  Benchmark benchmark(d, heads, tokens / size);
  const auto measure = [&](const char* pass, auto run, Method method, double model) {
    std::vector<double> alone, together;
    for (long round = 0; round < argument(4, 5); ++round) {
      alone.push_back(seconds_of([&] {
        if (ranks.is_first())
          for (Index i = 0; i < size; ++i) run(MPI_COMM_SELF, Method::chain);
      }));
      together.push_back(seconds_of([&] { run(MPI_COMM_WORLD, method); }));
    }
    const double ratio = machine::median(alone) / machine::median(together);
    if (ranks.is_first())
      std::printf("| %s | %s | %.3f | %.3f | %.2f | %.2f | %.2f |\n", pass,
                  method == Method::chain ? "chain" : "segments", machine::median(alone),
                  machine::median(together), ratio, model, ratio / model);
  };
  if (ranks.is_first())
    std::printf(
        "delta rule, d = %td, %td heads, %td tokens, %td ranks\n\n| pass | method | alone, "
        "s | together, s | ratio | model | of the model |\n|---|---|---:|---:|---:|---:|---:|"
        "\n",
        d, heads, tokens, size);
  const auto scan = [&](MPI_Comm comm, Method method) { benchmark.scan(comm, method); };
  const auto both = [&](MPI_Comm comm, Method method) { benchmark.backward(comm, method); };
  const double all = static_cast<double>(heads * size);
  const double chain = all / static_cast<double>(heads + size - 1);
  measure("scan", scan, Method::chain, chain);
  measure("scan", scan, Method::segments,
          all / ((size > 2 ? 2.5 : 2) * static_cast<double>(heads)));
  measure("scan and backward", both, Method::chain, chain);
  MPI_Finalize();
}
