#include <fastweights/algorithms/heads.hpp>
#include <fastweights/layers/memory/fast_weight_layer.hpp>
#include <fastweights/layers/memory/summed_heads.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <numeric>

#include "support/layer_checks.hpp"

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

TEST_CASE("for_each_head: calls every head once and rethrows", "[heads]") {
  std::vector<int> calls(20);
  fw::for_each_head(20, true, [&](Index h) { ++calls[static_cast<std::size_t>(h)]; });
  CHECK(calls == std::vector<int>(20, 1));
  fw::for_each_head(0, true, [&](Index) { FAIL("there are no heads"); });
  CHECK_THROWS_WITH(fw::for_each_head(8, true,
                                      [](Index h) {
                                        if (h == 5) throw std::invalid_argument("head 5");
                                      }),
                    "head 5");
}

#ifdef __unix__
// The child has none of the parent's threads.
TEST_CASE("for_each_head: a child of fork calls every head", "[heads]") {
  const Threads used(4);
  const auto sum = [] {
    std::vector<int> calls(8);
    fw::for_each_head(8, true, [&](Index h) { ++calls[static_cast<std::size_t>(h)]; });
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

template <class Layer> Outputs run(bool parallel, int threads) {
  const Threads used(threads);
  Layer layer({.d_model = 24, .heads = 8, .parallel = parallel, .allow_unstable = true},
              fw::DeltaRule<float>({.key_size = 5, .value_size = 17}));
  fw::Random random(3);
  layer_checks::randomise(layer, random);
  Layer grad = layer;
  Outputs a;
  fw::set_zero_parameters(grad);
  Matrix x(24, 70);
  random.fill(x);
  a.y.setConstant(24, 70, NAN);
  a.dx.setConstant(24, 70, NAN);
  auto state = layer.initial_state();
  typename Layer::Trace trace;
  layer.forward(state, x, a.y, trace, fw::Pass::train);
  layer.backward(x, trace, a.y, a.dx, grad);
  a.gradient = grad.output.weight.reshaped();
  return a;
}

TEMPLATE_TEST_CASE("heads in parallel: the same bits for any number of threads", "[heads]",
                   fw::FastWeightLayer<fw::DeltaRule<float>>,
                   fw::SummedHeads<fw::DeltaRule<float>>) {
  const Outputs alone = run<TestType>(false, 1);
  CHECK(alone.y.allFinite());
  for (const int threads : {1, 2, 4, 8}) {
    INFO(threads << " threads");
    CHECK(run<TestType>(true, threads) == alone);
  }
}

}  // namespace
