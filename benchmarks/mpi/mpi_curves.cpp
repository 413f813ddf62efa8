// The model fw::mpi::seconds for up to 1,024 ranks: the efficiency, which is the time of one rank
// over that of P ranks times P. Prints columns for gnuplot, one block a network:
//
//     P chain segments heads model data
//
// The first three scan 16 heads of d = 128 over a sequence of 2^20 tokens with the delta rule. The
// last two train a language model of 24 such layers, 2,048 wide, with 4,096 tokens a rank: of one
// sequence that is cut over the ranks, with states that go along the chain; and of a sequence a
// rank. Both then sum their gradients.

#include <cstdio>
#include <fastweights/mpi/cost.hpp>

namespace {

using fw::mpi::Machine;
using fw::mpi::Method;
using fw::mpi::Work;

constexpr double heads = 16, d = 128, layers = 24, width = heads * d;

Work scan_of(double ranks, double tokens) {
  return {.heads = heads,
          .ranks = ranks,
          .tokens = tokens,
          .token_flops = 6 * d * d,
          .token_bytes = 4 * (4 * d + 1),
          .state_bytes = 4 * d * d};
}

double efficiency(Method method, double ranks, const Machine& machine) {
  constexpr double tokens = 1 << 20;
  return fw::mpi::seconds(method, scan_of(1, tokens), machine) /
         (ranks * fw::mpi::seconds(method, scan_of(ranks, tokens / ranks), machine));
}

// Of a training step. A token takes six flops a weight and four scans of every head.
double training(double ranks, bool one_sequence, const Machine& machine) {
  constexpr double tokens = 4096, weights = layers * 12 * width * width;
  const double flops = tokens * (6 * weights + 4 * layers * heads * 6 * d * d),
               step = flops / machine.flops_per_second,
               sum = 2 * 4 * weights * (ranks - 1) / ranks / machine.bytes_per_second,
               state = machine.latency + 4 * d * d / machine.bytes_per_second,
               parts = layers * heads;
  // A rank between others receives and sends each state, and its gradient.
  const double waits = one_sequence ? (ranks - 1) * (step / parts + 4 * state) : 0,
               messages = one_sequence ? 4 * parts * state : 0;
  return step / (step + waits + messages + sum);
}

}  // namespace

int main() {
  for (const Machine& machine : {Machine{.latency = 50e-6, .bytes_per_second = 1.2e8},
                                 Machine{.latency = 30e-6, .bytes_per_second = 1.2e9},
                                 Machine{.latency = 5e-6, .bytes_per_second = 1.2e10}}) {
    for (double ranks = 1; ranks <= 1024; ranks *= 2)
      std::printf(
          "%.0f %.4f %.4f %.4f %.4f %.4f\n", ranks, efficiency(Method::chain, ranks, machine),
          efficiency(Method::segments, ranks, machine), efficiency(Method::heads, ranks, machine),
          training(ranks, true, machine), training(ranks, false, machine));
    std::printf("\n\n");
  }
}
