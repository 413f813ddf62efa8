#include <fastweights/any_memory/table.hpp>
#include <fastweights/any_memory/table/deltas.hpp>

#include "networks/operation_checks.hpp"
#include "support/queue_parallel.hpp"

/// \file
/// Gradients of a network's state. That of every operation is checked by check_state_gradient.

namespace {

using namespace fw::networks;
using namespace operation_checks;
using Catch::Matchers::ContainsSubstring;

template <class X> X layer(const X& x) {
  const X y = convolution(gru(x, "gru", 4), "conv", 3);
  const X k = l2(linear(y, "k", 4), 2);
  return memory(fw::DeltaRule<ScalarOf<X>>({2, 2}), {k, y, sigmoid(y.rows_of(0, 2))}, {k});
}

TEST_CASE("the gradient of the state of several operations", "[networks]") {
  check_operation(3, [](const auto& x) { return layer(x); });
}

// The pass overwrites a first state that is an input, so the state before it has no gradient.
TEST_CASE("a learned first state: gradients, streaming and roll back", "[networks]") {
  check_operation(4, [](const auto& x) {
    using S = ScalarOf<decltype(x)>;
    const auto W = parameter(*x.builder, "W", 8);
    const auto k = l2(x, 2);
    return memory(fw::DeltaRule<S>({2, 2}), {k, x, sigmoid(linear(x, "b", 2))}, {k}, "memory",
                  LearnedState<S>({W}, Learned::first_state));
  });
}

template <class X> auto named(const X&, const char* name, fw::MemoryOptions options) {
  return fw::make_memory<ScalarOf<X>>(name, std::move(options));
}

// No pass changes them, so later tokens have a part in the gradient of those before.
TEST_CASE("the gradient of slow weights that no input gives", "[networks]") {
  check_operation(4, [](const auto& x) {
    const auto decay = sigmoid(linear(x, "w", 4)), r = linear(x, "r", 4);
    return memory(named(x, "Rwkv6", {.key_size = 2}), {x, x, decay}, {r, x, x});
  });
}

// D of Mamba-3 and the clock of cyclic flow attention.
TEST_CASE("the gradient of a state that has numbers", "[networks]") {
  check_operation(4, [](const auto& x) {
    const auto number = [&](const char* name) { return sigmoid(linear(x, name, 2)); };
    const auto q = linear(x, "q", 4), v = linear(x, "v", 4), a = linear(x, "a", 2);
    return memory(named(x, "Mamba3", {.key_size = 2}),
                  {x, v, number("decay"), number("step"), number("share"), a}, {q, v, x});
  });
  check_operation(4, [](const auto& x) {
    const auto number = [&](const char* name) { return sigmoid(linear(x, name, 2)); };
    return memory(named(x, "CyclicFlowAttention", {.key_size = 2, .more = {{"frequencies", 2}}}),
                  {x, x, number("beta"), number("decay"), number("advance")}, {linear(x, "q", 4)});
  });
}

// A program that learns the state a text starts from.
TEST_CASE("the state before a text is learned by gradient descent", "[networks]") {
  const Net net = network_of(3, [](const auto& x) { return layer(x); });
  fw::Random random(1);
  const Matrix<double> x = random_matrix(3, 4, random), wanted = random_matrix(4, 4, random) * 0.1;
  State start = net.initial_state();
  Net::Trace trace;
  run(net, start, x, trace);
  Net unused = fw::zero_gradient(net);
  const auto loss_of = [&](State state) {
    return (run(net, state, x, trace, fw::Pass::train) - wanted).squaredNorm();
  };
  const double before = loss_of(start);
  for (int i = 0; i < 200; ++i) {
    State state = start, dstate = net.state_gradient();
    const Matrix<double> y = run(net, state, x, trace, fw::Pass::train);
    const Matrix<double> dy = 2 * (y - wanted);
    Matrix<double> dx = x;
    net.backward(x, trace, dy, dx, unused, {.state = &dstate});
    for (std::size_t m = 0; m < start.members.size(); ++m) {
      std::vector<double> gradient;
      append_numbers(dstate.members[m].part->object(), gradient);
      std::size_t at = 0;
      for_each_array<double>(start.members[m].part->object(), [&](auto numbers) {
        for (double& number : numbers) number -= 0.1 * gradient[at++];
      });
    }
  }
  CHECK(loss_of(start) < 0.8 * before);
}

TEST_CASE("a gradient of a state that does not fit is refused, and nothing changes", "[networks]") {
  const Net net = network_of(3, [](const auto& x) { return layer(x); });
  fw::Random random(1);
  const Matrix<double> x = random_matrix(3, 4, random), dy = random_matrix(4, 4, random);
  State state = net.initial_state(2);
  Net::Trace trace;
  run(net, state, x, trace, fw::Pass::train);
  const auto refused = [&](State dstate, const std::string& message) {
    Matrix<double> dx = x;
    Net grad = fw::zero_gradient(net);
    CHECK_THROWS_AS(net.backward(x, trace, dy, dx, grad, {.state = &dstate}),
                    std::invalid_argument);
    CHECK_THROWS_WITH(net.backward(x, trace, dy, dx, grad, {.state = &dstate}),
                      ContainsSubstring(message));
    CHECK(dx == x);
    for (const auto& each : grad.weights) CHECK(largest_entry(each.value) == 0);
  };
  refused(net.state_gradient(1), "state_gradient(2) made");
  refused(State(), "state_gradient(2) made");
  State fewer = net.state_gradient(2), other = fewer;
  fewer.members.pop_back();
  refused(fewer, "state_gradient(2) made");
  std::swap(other.members[0], other.members[1]);
  refused(other, "state_gradient(2) made");
  QueueParallel parallel(1);
  parallel.go_to(0);
  state = net.initial_state(2);
  run(net, state, x, trace, fw::Pass::train.over(parallel));
  refused(net.state_gradient(2), "none after a pass over a SequenceParallel");
}

}  // namespace
