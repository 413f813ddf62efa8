// Compares fw::mpi::seconds, by which mpi::scan chooses its method, with the time of a scan.
//
//     mpirun -n 2 build/release/benchmarks/mpi_model [LATENCY]
//
// Fits latency and bandwidth to messages between two ranks, and the rate of scans to a scan by one
// rank. Then compares its predictions with scans over all ranks, to which nothing was fitted. With
// LATENCY every message of a state takes so many seconds more. More ranks than processors cannot
// scan at the same time: their tokens sleep instead, so that only the order of messages and waits
// is checked.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "mpi/scan_run.hpp"

namespace {

using fw::Index;
using fw::mpi::Machine;
using fw::mpi::Method;
using fw::mpi::Work;

double added_latency = 0;

void wait(double seconds) {
  const double end = machine::wall_clock() + seconds;
  while (machine::wall_clock() < end) std::this_thread::yield();
}

}  // namespace

// MPI calls the functions of the program if it has them; theirs begin with P.
extern "C" int MPI_Recv(void* buffer, int count, MPI_Datatype type, int from, int tag,
                        MPI_Comm comm, MPI_Status* status) {
  const int code = PMPI_Recv(buffer, count, type, from, tag, comm, status);
  if (added_latency > 0) wait(added_latency);
  return code;
}

namespace {

// A memory whose writes sleep for β seconds.
struct Sleeper {
  using Scalar = float;
  using Signature = fw::KeyValueBeta<fw::Dynamic, fw::Dynamic>;
  static constexpr std::string_view name = "Sleeper";
  template <class C> struct State {
    fw::mat<C, fw::Dynamic, fw::Dynamic> W;
    static constexpr auto names = fw::names("W");
  };
  using OwnedState = State<fw::Owned<float>>;

  Index d;
  Signature signature() const { return {{.dk = d, .dv = d}}; }
  State<fw::Extents> state_extents() const { return {{d, d}}; }
  void write(OwnedState&, const fw::WriteToken<Sleeper>& t) const {
    usleep(static_cast<unsigned>(1e6 * double{t.beta}));
  }
  void read(const OwnedState&, const fw::ReadToken<Sleeper>&, fw::OutToken<Sleeper> y) const {
    y.output.setZero();
  }
};

// The shortest of some runs: a disturbance only slows a run down.
template <class F> double best_seconds(const F& f) {
  double best = seconds_of(f);
  for (int round = 0; round < 6; ++round) best = std::min(best, seconds_of(f));
  return best;
}

// Of a message that two ranks send to each other at the same time, many times.
std::vector<double> message_seconds(const fw::mpi::Ranks& ranks, Index bytes, int rounds) {
  const auto size = static_cast<std::size_t>(bytes);
  std::vector<std::byte> to(size);
  const int other = 1 - ranks.rank(), count = static_cast<int>(bytes);
  std::vector<double> all;
  for (int round = 0; round < rounds; ++round) {
    const double start = machine::wall_clock();
    const auto from = std::make_unique_for_overwrite<std::byte[]>(size);  // new, as in a scan
    MPI_Request request;
    MPI_Isend(to.data(), count, MPI_BYTE, other, 0, MPI_COMM_WORLD, &request);
    MPI_Recv(from.get(), count, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    all.push_back(machine::wall_clock() - start);
  }
  return all;
}

// Bytes a second of memory that is used for the first time.
double new_memory_rate() {
  constexpr std::size_t bytes = std::size_t(1) << 26;  // more than malloc keeps
  std::vector<double> all;
  for (int round = 0; round < 5; ++round) {
    const double start = machine::wall_clock();
    const auto memory = std::make_unique_for_overwrite<std::byte[]>(bytes);
    for (std::size_t i = 0; i < bytes; i += 512)
      static_cast<volatile std::byte*>(memory.get())[i] = {};
    all.push_back(machine::wall_clock() - start);
  }
  return static_cast<double>(bytes) / machine::median(all);
}

// Measured by the first two ranks, while the others leave the processor to them. The latency is
// that of a short message. The bandwidth has the least squares of the relative errors of long ones:
// the first bytes of a message can be faster than the network.
Machine fit(const fw::mpi::Ranks& ranks) {
  Machine found;
  if (ranks.rank() < 2) {
    const std::vector<double> brief = message_seconds(ranks, 64, 300);
    found.latency = *std::min_element(brief.begin(), brief.end());
    double ones = 0, squares = 0;
    for (Index bytes = Index(1) << 18; bytes <= Index(1) << 24; bytes *= 2) {
      const double each =
          static_cast<double>(bytes) / machine::median(message_seconds(ranks, bytes, 15));
      ones += each;
      squares += each * each;
    }
    found.bytes_per_second = squares / ones;
    found.new_bytes_per_second = new_memory_rate();
  }
  wait_for_all();
  MPI_Bcast(&found, sizeof(found), MPI_BYTE, 0, MPI_COMM_WORLD);
  return found;
}

Work work_of(Index d, Index heads, Index ranks, Index tokens) {
  const auto size = static_cast<double>(d);
  return {.heads = static_cast<double>(heads),
          .ranks = static_cast<double>(ranks),
          .tokens = static_cast<double>(tokens),
          .token_flops = 6 * size * size,
          .token_bytes = 4 * (4 * size + 1),
          .state_bytes = 4 * size * size};
}

double worst = 1;
void report(const fw::mpi::Ranks& ranks, const char* what, Index d, Index heads, Index tokens,
            double predicted, double measured) {
  const double ratio = measured / predicted;
  worst = std::max({worst, ratio, 1 / ratio});
  if (ranks.is_first())
    std::printf("| %s | %td | %td | %td | %.2f | %.2f | %.2f |\n", what, d, heads, tokens,
                1e3 * predicted, 1e3 * measured, ratio);
}

void compare_scans(const fw::mpi::Ranks& ranks, Machine machine) {
  struct Case {
    Index d, heads, tokens;
  };
  for (const Case& c : {Case{64, 4, 32768}, Case{64, 16, 8192}, Case{128, 2, 16384},
                        Case{128, 8, 8192}, Case{256, 4, 4096}}) {
    ScanRun run(c.d, c.heads, c.tokens);
    const double alone = best_seconds([&] {
      if (ranks.is_first()) run.scan(MPI_COMM_SELF, Method::chain);
    });
    const Work work = work_of(c.d, c.heads, ranks.size(), c.tokens);
    machine.flops_per_second = work.heads * work.tokens * work.token_flops / alone;
    for (const Method method : {Method::chain, Method::heads, Method::segments}) {
      if (added_latency > 0 && method == Method::heads) continue;  // its messages do not wait
      report(ranks, name_of(method), c.d, c.heads, c.tokens,
             fw::mpi::seconds(method, work, machine),
             best_seconds([&] { run.scan(MPI_COMM_WORLD, method); }));
    }
  }
}

void compare_schedules(const fw::mpi::Ranks& ranks, const Machine& machine) {
  struct Case {
    Index d, heads;
    float seconds;  // of a token
  };
  for (const Case& c :
       {Case{64, 4, 0.004f}, Case{128, 8, 0.004f}, Case{128, 32, 0.002f}, Case{256, 8, 0.008f}}) {
    const Sleeper memory{c.d};
    const Eigen::MatrixXf x = Eigen::MatrixXf::Zero(c.d, c.heads);
    const Eigen::RowVectorXf beta = Eigen::RowVectorXf::Constant(c.heads, c.seconds);
    Eigen::MatrixXf y = x;
    std::vector states(static_cast<std::size_t>(c.heads), fw::initial_state(memory));
    Work work = work_of(c.d, c.heads, ranks.size(), 1);
    work.token_flops = double{c.seconds} * machine.flops_per_second;
    report(ranks, "chain, sleeping", c.d, c.heads, 1,
           fw::mpi::seconds(Method::chain, work, machine), best_seconds([&] {
             fw::mpi::scan(memory, std::span(states), {x, x, beta}, {x}, {y}, MPI_COMM_WORLD,
                           Method::chain);
           }));
  }
}

}  // namespace

int main(int argc, char** argv) {
  int given = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &given);
  const fw::mpi::Ranks ranks(MPI_COMM_WORLD);
  if (argc > 1) added_latency = std::atof(argv[1]);
  if (ranks.size() > 1) {
    const Machine machine = fit(ranks);
    if (ranks.is_first())
      std::printf(
          "\n%d ranks: latency %.0f us, %.2f Gb/s, %.1f GB/s of new memory\n\n"
          "| method | d | heads | tokens of a rank | model, ms | measured, ms | ratio |\n"
          "|---|---:|---:|---:|---:|---:|---:|\n",
          ranks.size(), 1e6 * machine.latency, 8e-9 * machine.bytes_per_second,
          1e-9 * machine.new_bytes_per_second);
    const auto cores = static_cast<int>(std::thread::hardware_concurrency());
    if (ranks.size() <= cores) compare_scans(ranks, machine);
    compare_schedules(ranks, machine);
    if (ranks.is_first()) std::printf("\nlargest error: a factor of %.2f\n", worst);
  }
  MPI_Finalize();
}
