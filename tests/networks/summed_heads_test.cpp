#include <fastweights/any_memory/table/caches.hpp>
#include <fastweights/any_memory/table/deltas.hpp>
#include <fastweights/any_memory/table/sums.hpp>
#include <fastweights/layers/summed_heads.hpp>

#include "networks/operation_checks.hpp"
#include "support/queue_parallel.hpp"

namespace {

using namespace fw::networks;
using namespace operation_checks;
using Catch::Matchers::ContainsSubstring;
template <class S> using Sum = fw::LinearAttention<S>;
template <class S> using Delta = fw::DeltaRule<S>;

template <template <class> class Rule> auto summed(const SummedHeadsOptions& o) {
  return [=](const auto& x) {
    using S = ScalarOf<decltype(x)>;
    return summed_heads(x, "mixer", Rule<S>({.key_size = 3, .value_size = 4}), o);
  };
}
constexpr SummedHeadsOptions causal{.heads = 3, .allow_unstable = true};
constexpr SummedHeadsOptions full{
    .heads = 3, .causal = false, .bias = true, .allow_unstable = true};

// The full form takes a whole sequence in a pass.
template <template <class> class Rule> void check_full() {
  const auto f = summed<Rule>(full);
  const Net network = network_of(5, f);
  for (const Index steps : {1, 6}) check_gradients(network, f, steps);
  check_state_gradient(network, f);
  check_batch(network, 3, 4);
  fw::Random random(4);
  check_ragged_gradients(network, random);
}

TEST_CASE("summed heads: gradients and streaming", "[networks]") {
  check_operation(7, summed<Sum>(causal));
  check_operation(7, summed<Delta>(causal));
}
TEST_CASE("summed heads, full: gradients and sequences beside each other", "[networks]") {
  check_full<Sum>();
  check_full<Delta>();
}

TEST_CASE("summed heads of linear attention are Σ Q Kᵀ V W_o", "[networks]") {
  constexpr Index d = 5, steps = 6;
  for (const bool is_causal : {true, false}) {
    Net network = network_of(d, summed<Sum>({.heads = 2, .causal = is_causal}));
    fw::Random random(6);
    const Matrix<double> x = random_matrix(d, steps, random);
    const auto projected = [&](const std::string& name, Index h) -> Matrix<double> {
      const Matrix<double>& w = weight(network, "mixer." + name + ".weight");
      return w.middleRows(h * w.rows() / 2, w.rows() / 2) * x;
    };
    Matrix<double> sum = Matrix<double>::Zero(4, steps);
    for (Index h = 0; h < 2; ++h) {
      Matrix<double> scores = projected("write.key", h).transpose() * projected("read.query", h);
      if (is_causal) scores = scores.triangularView<Eigen::Upper>().toDenseMatrix();
      sum += projected("write.value", h) * scores;
    }
    State state = network.initial_state();
    Net::Trace trace;
    check_equal(run(network, state, x, trace), weight(network, "mixer.output.weight") * sum, 1e-13);
    CHECK(names_of_weights(network) ==
          "mixer.write.key.weight\nmixer.write.value.weight\nmixer.read.query.weight\n"
          "mixer.output.weight\n");
  }
}

TEST_CASE("summed heads, full: no pass takes a part of a sequence", "[networks]") {
  const Net network = network_of(5, summed<Delta>(full));
  fw::Random random(8);
  const Matrix<double> x = random_matrix(5, 6, random);
  for (const fw::Pass pass : {fw::Pass::infer, fw::Pass::train}) {
    QueueParallel parallel(1);
    parallel.go_to(0);
    State state = network.initial_state();
    Net::Trace trace;
    CHECK_THROWS_WITH(run(network, state, x, trace, pass.over(parallel)),
                      ContainsSubstring("mixer.memory: a part of a sequence"));
  }
  CHECK_THROWS_WITH(network.initial_state({.roll_back = 2}),
                    ContainsSubstring("mixer.memory: the state cannot roll back; the operation "
                                      "needs whole sequences"));
}

TEST_CASE("summed heads, full: a prompt is read as a whole", "[networks]") {
  Builder<double> builder;
  Net network = builder.build(summed<Delta>(full)(embedding(builder, "embed", 5, 3)));
  fw::Random random(2);
  fw::initialise(network, random);
  const std::vector<int> ids{1, 4, 0, 2, 3};
  Matrix<double> all(network.outputs(), 5), last(network.outputs(), 1);
  State whole = network.initial_state(), prompt = network.initial_state();
  Net::Trace trace;
  network.forward(whole, ids, all, trace);
  network.prefill(prompt, ids, last, trace, 2);
  check_equal(last, all.col(4), 1e-13);
}

TEST_CASE("summed heads refuse what they cannot do", "[networks]") {
  Builder<double> net;
  const auto x = net.input(4);
  const fw::KeyValueCache<double> cache({.key_size = 3, .value_size = 4}, {.capacity = 2});
  CHECK_THROWS_WITH(summed_heads(x, "mixer", cache, {.causal = false}),
                    ContainsSubstring("mixer: the full form of KeyValueCache was requested"));
  const fw::DeltaRule<double> delta({.key_size = 3, .value_size = 4});
  for (const bool is_causal : {true, false})
    CHECK_THROWS_WITH(summed_heads(x, "mixer", delta, {.causal = is_causal}),
                      ContainsSubstring("DeltaRule is unstable with keys of IdentityMap"));
}

}  // namespace
