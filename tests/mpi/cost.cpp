// The model by which mpi::scan chooses its method.

#include <fastweights/mpi/cost.hpp>

#include "mpi/memories.hpp"
#include "mpi/parts.hpp"

void mpi_test::check_cost() {
  using fw::mpi::Machine;
  using fw::mpi::Method;
  constexpr double d = 128;
  const auto work = [](double heads, double ranks) {
    return fw::mpi::Work{.heads = heads,
                         .ranks = ranks,
                         .tokens = 4096,
                         .token_flops = 6 * d * d,
                         .token_bytes = 4 * (4 * d + 1),
                         .state_bytes = 4 * d * d};
  };
  const auto chosen = [&](double heads, double ranks, double gigabits, bool may_exchange = true) {
    return fw::mpi::fastest(work(heads, ranks), Machine{.bytes_per_second = gigabits / 8 * 1e9},
                            true, may_exchange);
  };
  const Machine free{.latency = 0, .bytes_per_second = 1e30, .new_bytes_per_second = 1e30};
  const auto ratio = [&](Method method, double heads, double ranks) {
    return fw::mpi::seconds(Method::chain, work(heads, 1), free) * ranks /
           fw::mpi::seconds(method, work(heads, ranks), free);
  };
  const auto near = [](double a, double b) { return std::abs(a - b) < 1e-9; };
  expect(near(ratio(Method::chain, 8, 2), 16.0 / 9), "the chain's H P / (H + P - 1)");
  expect(near(ratio(Method::segments, 8, 8), 3.2), "P / 2.5 of segments");
  expect(near(ratio(Method::heads, 8, 8), 8), "all ranks at work by heads");
  expect(chosen(16, 2, 10) == Method::chain, "few ranks: the chain");
  expect(chosen(16, 16, 100) == Method::heads, "as many as heads, a fast network: by heads");
  expect(chosen(16, 16, 100, false) == Method::chain, "not by heads if they can't be exchanged");
  expect(chosen(16, 16, 1) == Method::chain, "a slow network: the chain");
  expect(chosen(16, 256, 10) == Method::segments, "more ranks than heads: segments");
  expect(fw::mpi::fastest(work(1, 64), Machine{}, false, false) == Method::chain,
         "a memory that is not mergeable: the chain");
}
