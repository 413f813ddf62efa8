#include <fastweights/any_memory/table/deltas.hpp>
#include <fastweights/layers/summed_heads.hpp>
#include <fastweights/math/parallel_for.hpp>
#include <numeric>

#include "support/catch.hpp"

#ifdef _OPENMP
#include <omp.h>
#endif

#ifdef __unix__
#include <sys/wait.h>
#include <unistd.h>
#endif

namespace {

using fw::Index;
using Matrix = Eigen::MatrixXf;

// Sets the number of OpenMP threads for its lifetime.
struct Threads {
#ifdef _OPENMP
  int before = omp_get_max_threads();
  explicit Threads(int count) { omp_set_num_threads(count); }
  ~Threads() { omp_set_num_threads(before); }
#else
  explicit Threads(int) {}
#endif
};

TEST_CASE("parallel_for: calls every head once and rethrows", "[heads]") {
  std::vector<int> calls(20);
  fw::parallel_for(20, true, [&](Index h) { ++calls[static_cast<std::size_t>(h)]; });
  CHECK(calls == std::vector<int>(20, 1));
  fw::parallel_for(0, true, [&](Index) { FAIL("there are no heads"); });
  CHECK_THROWS_WITH(fw::parallel_for(8, true,
                                     [](Index h) {
                                       if (h == 5) throw std::invalid_argument("head 5");
                                     }),
                    "head 5");
}

#ifdef __unix__
// The child has none of the parent's threads.
TEST_CASE("parallel_for: a child of fork calls every head", "[heads]") {
  const Threads used(4);
  const auto sum = [] {
    std::vector<int> calls(8);
    fw::parallel_for(8, true, [&](Index h) { ++calls[static_cast<std::size_t>(h)]; });
    return std::accumulate(calls.begin(), calls.end(), 0);
  };
  CHECK(sum() == 8);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);  // instead of waiting for ever
    const pid_t grandchild = ::fork();
    const bool good = sum() == 8 && fw::detail::heads_at_once(true) == 1;
    if (grandchild == 0) ::_exit(good ? 0 : 1);
    int status = 1;
    ::waitpid(grandchild, &status, 0);
    ::_exit(good && status == 0 ? 0 : 1);
  }
  int status = 1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(sum() == 8);  // the parent has its threads
}
#endif

struct Outputs {
  Matrix y, dx;
  Eigen::VectorXf gradient;
  bool operator==(const Outputs& o) const {
    return y == o.y && dx == o.dx && gradient == o.gradient;
  }
};

using fw::networks::Network;

template <class F> Network<float> network_of(const F& layer) {
  fw::networks::Builder<float> net;
  Network<float> network =
      net.build(layer(net.input(24), fw::DeltaRule<float>({.key_size = 5, .value_size = 17})));
  fw::Random random(3);
  for (auto& weight : network.weights) {
    weight.value.resize(weight.rows(), weight.cols());
    random.fill(weight.value, 0.8 / std::sqrt(static_cast<double>(weight.cols())));
  }
  return network;
}

Outputs run(const Network<float>& network, int threads) {
  const Threads used(threads);
  fw::Random random(4);
  Network<float> grad = fw::zero_gradient(network);
  Outputs a;
  Matrix x(24, 70);
  random.fill(x);
  a.y.setConstant(24, 70, NAN);
  a.dx.setConstant(24, 70, NAN);
  auto state = network.initial_state();
  Network<float>::Trace trace;
  network.forward(state, x, a.y, trace, fw::Pass::train);
  network.backward(x, trace, a.y, a.dx, grad);
  a.gradient = grad.weights.back().value.reshaped();  // of the output's map
  return a;
}

void check_threads(const Network<float>& network) {
  const Outputs alone = run(network, 1);
  CHECK(alone.y.allFinite());
  CHECK(alone.gradient.size() > 0);
  for (const int threads : {1, 2, 4, 8}) {
    INFO(threads << " threads");
    CHECK(run(network, threads) == alone);
  }
}

TEST_CASE("heads in parallel: the same bits for any number of threads", "[heads]") {
  check_threads(network_of([](const auto& x, const auto& rule) {
    return fast_weights(x, "mixer", rule, {.heads = 8, .allow_unstable = true});
  }));
  for (const bool causal : {true, false})
    check_threads(network_of([&](const auto& x, const auto& rule) {
      return summed_heads(x, "mixer", rule, {.heads = 8, .causal = causal, .allow_unstable = true});
    }));
}

}  // namespace
