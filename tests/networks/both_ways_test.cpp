#include <fastweights/networks/operations/both_ways.hpp>

#include "networks/operation_checks.hpp"

namespace {

using namespace fw::networks;
using namespace operation_checks;
using Catch::Matchers::ContainsSubstring;

// Sequences of 5, 0 and 3 tokens in one pass give what each gives alone.
void check_ragged(const Net& network, Index rows, fw::Random& random) {
  const Matrix<double> x = random_matrix(rows, 8, random);
  Net::Trace trace;
  Matrix<double> alone(network.outputs(), 8), together = alone;
  for (const auto& [first, steps] : {std::pair<Index, Index>{0, 5}, {5, 3}}) {
    State state = network.initial_state();
    alone.middleCols(first, steps) = run(network, state, x.middleCols(first, steps), trace);
  }
  State state = network.initial_state(3);
  const std::vector<Index> lengths{5, 0, 3};
  together.setConstant(not_a_number);
  network.forward(state, x, together, trace, {.lengths = lengths});
  CHECK(largest_entry(together - alone) <= 1e-14);
}

void check(Index rows, const Function& f) {
  fw::Random random(4);
  const Net network = network_of(rows, f);
  for (const Index steps : {1, 2, 9}) check_gradients(network, f, steps);
  check_ragged(network, rows, random);
  State state = network.initial_state();
  Net::Trace trace;
  run(network, state, random_matrix(rows, 3, random), trace);
  const State before = state;
  CHECK_THROWS_WITH(run(network, state, random_matrix(rows, 1, random), trace),
                    ContainsSubstring("expected the whole sequence in one pass"));
  CHECK(state.positions == before.positions);
}

TEST_CASE("sequences both ways: gradients, and no part of a sequence", "[networks]") {
  check(3, [](const auto& x) { return reversed(x); });
  check(2, [](const auto& x) { return reversed(convolution(reversed(x), "conv", 3)) + x; });
  for (const auto& [kernel, ahead] : {std::pair<Index, Index>{1, 0}, {4, 2}, {5, 4}, {3, 0}})
    check(3, [kernel = kernel, ahead = ahead](const auto& x) {
      return centred_convolution(x, "conv", kernel, ahead, true);
    });
}

TEST_CASE(
    "a centred convolution without tokens ahead is the causal one, and with the ends of its "
    "taps changed the reversed one",
    "[networks]") {
  fw::Random random(5);
  const Matrix<double> x = random_matrix(3, 8, random);
  const auto output = [&](const Net& network) {
    State state = network.initial_state();
    Net::Trace trace;
    return run(network, state, x, trace);
  };
  const Net causal = network_of(3, [](const auto& in) { return convolution(in, "conv", 4); });
  Net centred = network_of(3, [](const auto& in) { return centred_convolution(in, "conv", 4, 0); });
  centred.weights = causal.weights;
  CHECK(largest_entry(output(centred) - output(causal)) <= 1e-14);

  const Net backwards =
      network_of(3, [](const auto& in) { return reversed(convolution(reversed(in), "conv", 4)); });
  Net ahead = network_of(3, [](const auto& in) { return centred_convolution(in, "conv", 4, 3); });
  ahead.weights[0].value = backwards.weights[0].value.rowwise().reverse();
  CHECK(largest_entry(output(ahead) - output(backwards)) <= 1e-14);
}

TEST_CASE("a centred convolution refuses a kernel that is shorter than what is ahead",
          "[networks]") {
  for (const auto& [kernel, ahead] : {std::pair<Index, Index>{0, 0}, {2, 2}, {3, -1}}) {
    Builder<double> builder;
    const auto x = builder.input(2);
    CHECK_THROWS_WITH(centred_convolution(x, "conv", kernel, ahead), ContainsSubstring("conv"));
  }
}

}  // namespace
