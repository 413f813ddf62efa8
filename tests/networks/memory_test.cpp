#include <fastweights/any_memory/table.hpp>
#include <fastweights/any_memory/table/delta_products.hpp>
#include <fastweights/any_memory/table/deltas.hpp>
#include <fastweights/any_memory/table/gated.hpp>
#include <fastweights/any_memory/table/learners.hpp>
#include <fastweights/layers/fast_weights.hpp>
#include <fastweights/layers/self_referential.hpp>

#include "networks/operation_checks.hpp"

namespace {

using namespace fw::networks;
using namespace operation_checks;
using X = Value<double>;
using Catch::Matchers::ContainsSubstring;
using Delta = fw::DeltaRule<double>;

// Keys, values, … of several heads, of which x is the only input.
template <class X> X keys(const X& x, Index rows, const std::string& name) {
  return l2(linear(x, name, rows), 1);
}

struct Heads {
  Index keys = 1, values = 1, strengths = 1, queries = 1;
};

template <class X> X delta_rule(const X& x, const Heads& h, Index d_k, Index d_v) {
  return memory(fw::DeltaRule<ScalarOf<X>>({d_k, d_v}),
                {keys(x, h.keys * d_k, "k"), linear(x, "v", h.values * d_v),
                 sigmoid(linear(x, "b", h.strengths))},
                {linear(x, "q", h.queries * d_k)});
}

TEST_CASE("a memory of one head: gradients and streaming", "[networks]") {
  for (const Index d : {1, 3, 17})
    check_operation(3, [&](const auto& x) { return delta_rule(x, {}, d, 2); });
  for (const Index d : {1, 3, 17})
    check_operation(2, [&](const auto& x) {
      return memory(fw::GatedLinearAttention<ScalarOf<decltype(x)>>({2, d}),
                    {keys(x, 2, "k"), linear(x, "v", d), sigmoid(x)}, {x});
    });
}

TEST_CASE("memories of several heads: gradients and streaming", "[networks]") {
  check_operation(3, [](const auto& x) { return delta_rule(x, {3, 3, 3, 3}, 2, 3); });
  check_operation(3, [](const auto& x) {
    return delta_rule(x, {2, 4, 1, 2}, 2, 3);
  });  // shared keys
  check_operation(3, [](const auto& x) {
    return delta_rule(x, {1, 2, 2, 6}, 2, 3);
  });  // and states
  check_operation(3, [](const auto& x) { return delta_rule(x, {1, 1, 1, 5}, 1, 1); });
}

// Head h of n equal heads is a memory of its own.
TEST_CASE("shared heads are repeated heads", "[networks]") {
  const auto repeated = [](const auto& v, Index heads, Index times) {
    return repeat_heads(v, heads, times);
  };
  const Net shared = network_of(3, [](const auto& x) { return delta_rule(x, {1, 2, 2, 6}, 2, 3); });
  Net apart = network_of(3, [&](const auto& x) {
    return memory(fw::DeltaRule<ScalarOf<decltype(x)>>({2, 3}),
                  {repeated(keys(x, 2, "k"), 1, 6), repeated(linear(x, "v", 6), 2, 3),
                   repeated(sigmoid(linear(x, "b", 2)), 2, 3)},
                  {linear(x, "q", 12)});
  });
  REQUIRE(apart.weights.size() == shared.weights.size());
  apart.weights = shared.weights;
  fw::Random random(3);
  State a = shared.initial_state(), b = apart.initial_state();
  Net::Trace trace_a, trace_b;
  for (const Index steps : {5, 1, 1}) {
    const Matrix<double> x = random_matrix(3, steps, random);
    check_equal(run(shared, a, x, trace_a), run(apart, b, x, trace_b), 1e-14);
  }
}

TEST_CASE("several writes for every token, stacked one below the other", "[networks]") {
  check_operation(3, [](const auto& x) {
    return memory(fw::GatedDeltaProduct<ScalarOf<decltype(x)>, 2>({2, 3}),
                  {keys(x, 2 * 2 * 2, "k"), linear(x, "v", 2 * 2 * 3),
                   sigmoid(linear(x, "b", 2 * 2)), sigmoid(linear(x, "a", 2))},
                  {linear(x, "q", 4)});
  });
}

// The gradients of key and query are those of one value then.
TEST_CASE("a memory that is read with what it is written with: gradients", "[networks]") {
  check_operation(3, [](const auto& x) {
    const auto k = keys(x, 4, "k"), v = linear(x, "v", 6);
    return memory(fw::DeltaRule<ScalarOf<decltype(x)>>({2, 3}), {k, v, sigmoid(linear(x, "b", 2))},
                  {k});
  });
}

template <class X> X mesa(const X& x, Index heads, Index ridges) {
  const X ridge = 0.5 + softplus(parameter(*x.builder, "ridge", ridges * 2));
  return memory(fw::MesaMemory<ScalarOf<X>>({2, 3}),
                {keys(x, heads * 2, "k"), linear(x, "v", heads * 3), sigmoid(linear(x, "b", heads)),
                 sigmoid(linear(x, "a", heads))},
                {linear(x, "q", heads * 2)}, "memory", {ridge});
}

TEST_CASE("slow weights that are learned: gradients and streaming", "[networks]") {
  check_operation(3, [](const auto& x) { return mesa(x, 1, 1); });
  check_operation(3, [](const auto& x) { return mesa(x, 4, 4); });
  check_operation(3, [](const auto& x) { return mesa(x, 4, 2); });  // two heads share one
}

template <class X> X delta_rule_by_name(const X& x, const std::string& name) {
  const auto rule = fw::make_memory<ScalarOf<X>>(name, {.key_size = 2, .value_size = 3});
  return memory(rule, {keys(x, 4, "k"), linear(x, "v", 6), sigmoid(linear(x, "b", 2))},
                {linear(x, "q", 4)});
}

TEST_CASE("a memory by name is the rule", "[networks]") {
  const Net typed = network_of(3, [](const auto& x) { return delta_rule(x, {2, 2, 2, 2}, 2, 3); });
  const Net named = network_of(3, [](const auto& x) { return delta_rule_by_name(x, "DeltaRule"); });
  fw::Random random(3);
  State a = typed.initial_state(), b = named.initial_state();
  Net::Trace trace_a, trace_b;
  for (const Index steps : {5, 1}) {
    const Matrix<double> x = random_matrix(3, steps, random);
    CHECK(run(typed, a, x, trace_a) == run(named, b, x, trace_b));
  }
}

TEST_CASE("a memory without gradients is refused in a backward pass, with its path", "[networks]") {
  const Net network = network_of(3, [](const auto& x) {
    return module("mixer", x,
                  [](const auto& v) { return delta_rule_by_name(v, "DeferredDeltaRule"); });
  });
  State state = network.initial_state();
  Net::Trace trace;
  const Matrix<double> x = Matrix<double>::Ones(3, 4);
  const Matrix<double> dy = run(network, state, x, trace, fw::Pass::train);
  Matrix<double> dx(3, 4);
  Net grad = fw::zero_gradient(network);
  CHECK_THROWS_AS(network.backward(x, trace, dy, dx, grad), std::invalid_argument);
  CHECK_THROWS_WITH(network.backward(x, trace, dy, dx, grad),
                    ContainsSubstring("mixer.memory: ") && ContainsSubstring(" has no gradients"));
}

TEST_CASE("threads share the states, and give the same bits", "[networks]") {
  const auto layers = [](const auto& x) {
    const auto y = delta_rule(x, {1, 2, 2, 6}, 2, 3);  // states that queries share, by copies
    return attention(y, linear(y, "keys", 6), linear(y, "values", 6), 3, 20);
  };
  const Net network = network_of(3, layers);
  fw::Random random(5);
  const Matrix<double> x = random_matrix(3, 40, random);
  const auto outputs = [&](int threads, fw::Pass pass) {
    Eigen::setNbThreads(threads);
    State state = network.initial_state(4);
    Net::Trace trace;
    const Matrix<double> y = run(network, state, x, trace, pass);
    Eigen::setNbThreads(0);
    return y;
  };
  for (const fw::Pass pass : {fw::Pass::infer, fw::Pass::train})
    CHECK(outputs(1, pass) == outputs(3, pass));

  const Matrix<double> dy = random_matrix(network.outputs(), 40, random);
  const auto gradients = [&](int threads) {
    Eigen::setNbThreads(threads);
    State state = network.initial_state(4);
    Net::Trace trace;
    run(network, state, x, trace, fw::Pass::train);
    Net grad = fw::zero_gradient(network);
    Matrix<double> dx(3, 40);
    network.backward(x, trace, dy, dx, grad);
    Eigen::setNbThreads(0);
    std::vector<Matrix<double>> all{dx};
    for (const auto& weight : grad.weights) all.push_back(weight.value);
    return all;
  };
  CHECK(gradients(1) == gradients(3));
}

// Six queries, which share two states or three, and a memory whose slow weights are learned.
template <class X> X read_after_writes(const X& x) {
  using S = ScalarOf<X>;
  const X shared = full_memory(fw::DeltaRule<S>({2, 3}),
                               {keys(x, 2, "k"), linear(x, "v", 9), sigmoid(linear(x, "b", 3))},
                               {linear(x, "q", 12)});
  const X ridge = 0.5 + softplus(parameter(*x.builder, "ridge", 2));
  return full_memory(fw::MesaMemory<S>({2, 3}),
                     {keys(shared, 4, "l"), linear(x, "u", 6), sigmoid(linear(x, "c", 2)),
                      sigmoid(linear(x, "a", 2))},
                     {linear(shared, "p", 12)}, "mesa", {ridge});
}

TEST_CASE("reads after all writes: gradients, also of the state", "[networks]") {
  const Function f = [](const auto& x) { return read_after_writes(x); };
  const Net network = network_of(4, f);
  for (const Index steps : {1, 5}) {
    check_gradients(network, f, steps);
    check_state_gradient(network, f, steps);
  }
  check_batch(network, 3, 4);
  fw::Random random(4);
  check_ragged_gradients(network, random);
}

// Slow weights that all sequences share, of one head or of two, and first states.
std::vector<Function> layers_that_learn() {
  const auto named = [](const char* name) {
    return [name](const auto& x) {
      const auto rule = fw::make_memory<ScalarOf<decltype(x)>>(name, {.key_size = 4});
      return fast_weights(x, "mixer", rule, {.heads = 3});
    };
  };
  return {named("TttLinear"),
          named("NormalisedTitans"),
          named("RecurrentDeltaNet"),
          [](const auto& x) { return mesa(x, 4, 2); },
          [](const auto& x) { return read_after_writes(x); },
          [](const auto& x) { return self_referential(x, "mixer", 3); }};
}

// Everything that a train pass over sequences of different lengths computes.
std::vector<Matrix<double>> trained(const Net& network, const Matrix<double>& x,
                                    const Matrix<double>& dy, int threads) {
  const std::vector<Index> lengths{9, 0, 20, 11};
  Eigen::setNbThreads(threads);
  State state = network.initial_state(4), dstate = network.state_gradient(4);
  Net::Trace trace;
  Net grad = fw::zero_gradient(network);
  std::vector<Matrix<double>> all{dy, x};
  network.forward(state, x, all[0], trace, {.pass = fw::Pass::train, .lengths = lengths});
  network.backward(x, trace, dy, all[1], grad, {.state = &dstate});
  Eigen::setNbThreads(0);
  all.push_back(numbers_of(dstate));
  for (const auto& weight : grad.weights) all.push_back(weight.value);
  return all;
}

TEST_CASE("threads share what is learned of states, and give the same bits", "[networks]") {
  for (const Function& f : layers_that_learn()) {
    const Net network = network_of(6, f);
    INFO(names_of_weights(network));
    fw::Random random(7);
    const Matrix<double> x = random_matrix(6, 40, random);
    const Matrix<double> dy = random_matrix(network.outputs(), 40, random);
    const std::vector<Matrix<double>> expected = trained(network, x, dy, 1);
    for (const int threads : {2, 3}) CHECK(trained(network, x, dy, threads) == expected);
    Eigen::setNbThreads(3);
    check_gradients(network, f);
    Eigen::setNbThreads(0);
  }
}

template <class X>
X attend(const X& x, Index heads, Index key_heads, Index d, Index context, double scale = 0) {
  return attention(linear(x, "q", heads * d), linear(x, "k", key_heads * d),
                   linear(x, "v", key_heads * d), key_heads, context, scale);
}

TEST_CASE("attention: gradients and streaming", "[networks]") {
  for (const Index d : {1, 3, 17})
    check_operation(3, [&](const auto& x) { return attend(x, 1, 1, d, 20); });
  check_operation(3, [](const auto& x) { return attend(x, 6, 2, 2, 20); });
  check_operation(3, [](const auto& x) { return attend(x, 2, 2, 2, 20, 0.3); });
}

TEST_CASE("attention over the last tokens: streaming", "[networks]") {
  for (const Index context : {1, 2, 4})
    check_streaming(network_of(3, [&](const auto& x) { return attend(x, 4, 2, 2, context); }));
}

TEST_CASE("attention whose cache grows: gradients and streaming", "[networks]") {
  for (const Index capacity : {1, 3})
    check_operation(3, [&](const auto& x) {
      const auto y = linear(x, "keys", 4);
      return attention(linear(x, "queries", 8), y, linear(x, "values", 4), 2,
                       {.capacity = capacity});
    });
}

// The arrays of the state before a pass have other columns than those behind it, and a gradient
// that starts at zero has fewer.
TEST_CASE("attention whose cache grows: gradients of the state", "[networks]") {
  for (const Index queries : {2, 3}) {
    const Function f = [=](const auto& x) {
      return attention(linear(x, "queries", queries * 2 * 2), linear(x, "keys", 4),
                       linear(x, "values", 4), 2, {.capacity = 2});
    };
    const Net network = network_of(3, f);
    for (const Index steps : {1, 2, 9}) check_state_gradient(network, f, steps);
    fw::Random random(6);
    check_ragged_gradients(network, random);
  }
}

// Seven tokens of two sequences, where there is room for six.
TEST_CASE("attention with a limit refuses more tokens, and no state changes", "[networks]") {
  const auto layers = [](const auto& x) {
    const auto y = attention(x, x, x, 1, {.capacity = 6, .when_full = fw::WhenFull::refuse});
    return x + token_shift(y);
  };
  const Net network = network_of(3, layers);
  fw::Random random(5);
  const Matrix<double> x = random_matrix(3, 14, random);
  State state = network.initial_state(2);
  Net::Trace trace;
  run(network, state, tokens(x, 2, 0, 3), trace);
  State before = state;
  for (const fw::Pass pass : {fw::Pass::infer, fw::Pass::train})
    CHECK_THROWS_AS(run(network, state, tokens(x, 2, 3, 4), trace, pass), std::length_error);
  CHECK(run(network, state, tokens(x, 2, 3, 3), trace) ==
        run(network, before, tokens(x, 2, 3, 3), trace));
  CHECK_THROWS_AS(run(network, state, tokens(x, 2, 6, 1), trace), std::length_error);
}

TEST_CASE("attention to one token is its value", "[networks]") {
  const Eigen::Vector3d x(1, -2, 3);
  check_equal(value_of([](const auto& v) { return attention(v, v, v, 1, 1); }, x), x, 1e-15);
}

TEST_CASE("inputs that do not fit the memory are refused with its path", "[networks]") {
  const auto refused = [](const Function& f) {
    const auto build = [&] { network_of(6, [&](const X& x) { return module("mixer", x, f); }); };
    CHECK_THROWS_AS(build(), std::invalid_argument);
    CHECK_THROWS_WITH(build(), ContainsSubstring("mixer"));
  };
  const Delta rule({2, 3});
  refused([&](const X& x) { return memory(rule, {x, x}, {x}); });        // no strength
  refused([&](const X& x) { return memory(rule, {x, x, x}, {}); });      // no query
  refused([&](const X& x) { return memory(rule, {x, x, x}, {x, x}); });  // two
  refused([&](const X& x) {  // keys of two and a half heads
    return memory(rule, {x.rows_of(0, 5), x, x.rows_of(0, 2)}, {x});
  });
  refused([&](const X& x) {  // three key heads, two value heads
    return memory(rule, {x, x, x.rows_of(0, 1)}, {x.rows_of(0, 2)});
  });
  refused([&](const X& x) { return memory(rule, {x, x, x}, {x}, "memory", {x}); });
  refused([](const X& x) {  // a ridge that is not constant
    return memory(fw::MesaMemory<double>({2, 3}), {x, x, x, x}, {x}, "memory", {x.rows_of(0, 2)});
  });
}

}  // namespace
