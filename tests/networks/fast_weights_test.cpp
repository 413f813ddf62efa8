// The layer around any memory, and the self-referential layer, whose first state is learned.

#include <fastweights/any_memory/table.hpp>
#include <fastweights/any_memory/table/deltas.hpp>
#include <fastweights/feature_maps/chain.hpp>
#include <fastweights/feature_maps/dpfp.hpp>
#include <fastweights/feature_maps/elu_plus_one.hpp>
#include <fastweights/feature_maps/normalise.hpp>
#include <fastweights/layers/fast_weights.hpp>
#include <fastweights/layers/self_referential.hpp>
#include <set>

#include "networks/operation_checks.hpp"

namespace {

using namespace fw::networks;
using namespace operation_checks;
using Catch::Matchers::ContainsSubstring;
using fw::networks::FastWeightsOptions;
using Map = fw::SumNormalised<fw::EluPlusOne>;

// A layer around a memory of the table.
template <class PhiOf = fw::IdentityMap>
Function layer(const std::string& memory, const fw::MemoryOptions& sizes,
               const FastWeightsOptions& o, PhiOf map = {}) {
  return [=](const auto& x) {
    return fast_weights(x, "mixer", fw::make_memory<ScalarOf<decltype(x)>>(memory, sizes), o, map);
  };
}

std::set<std::string> names_of(const Net& network) {
  std::set<std::string> names;
  for (const auto& weight : network.weights) names.insert(weight.name);
  return names;
}

TEST_CASE("fast weights: gradients and streaming around memories of all kinds", "[networks]") {
  check_operation(4, layer("DeltaRule", {.key_size = 3}, {.heads = 2}, fw::L2Normalise()));
  check_operation(4, layer("DeltaRule", {.key_size = 3, .value_size = 2},
                           {.heads = 2, .scale = 0.5, .bias = true}, Map()));
  check_operation(3, layer("GatedDeltaRule", {.key_size = 2, .value_size = 3},
                           {.heads = 2, .norm = HeadNorm::rms}, fw::L2Normalise()));
  check_operation(3, layer("LinearAttention", {.key_size = 2, .value_size = 3},
                           {.heads = 3, .norm = HeadNorm::layer, .sums_heads = true}));
  check_operation(3, layer("RecurrentDeltaNet", {.key_size = 2}, {.heads = 2}));
  check_operation(3, layer("DeltaMlp", {.key_size = 2}, {.heads = 2}));
  check_operation(3, layer("PreconditionedDeltaRule", {.key_size = 2}, {}, fw::L2Normalise()));
  check_operation(3, layer("GatedDeltaProduct", {.key_size = 2}, {.heads = 2}, fw::L2Normalise()));
  const fw::MemoryOptions two_outputs{.key_size = 2, .value_size = 3, .more = {{"ranks", 2}}};
  for (const bool sums : {false, true})
    check_operation(3, layer("Mamba3Mimo", two_outputs,
                             {.heads = 2, .norm = HeadNorm::rms, .sums_heads = sums}));
  check_operation(3, layer("GatedSlotAttention", {.key_size = 2}, {.heads = 2}));
  check_operation(3, layer("GatedLinearAttention", {.key_size = 8, .value_size = 3},
                           {.heads = 2, .key_size = 2}, fw::Dpfp<2>()));
  check_operation(
      3, layer("KeyValueCache", {.key_size = 2, .value_size = 3, .more = {{"capacity", 32}}},
               {.heads = 2, .norm = HeadNorm::layer}));
  check_operation(3, layer("DeltaRnn", {.key_size = 3, .value_size = 2}, {.heads = 2}, Map()));
  check_operation(3, layer("DeltaLstm", {.key_size = 3, .value_size = 2}, {.heads = 2}, Map()));
}

TEST_CASE("fast weights: names of the weights", "[networks]") {
  const Net network = network_of(4, layer("RecurrentDeltaNet", {.key_size = 2},
                                          {.heads = 2, .bias = true, .norm = HeadNorm::layer}));
  std::set<std::string> expected{"mixer.norm.weight", "mixer.norm.bias"};
  for (const std::string of : {"write.key", "write.value", "write.query", "write.beta", "output"})
    for (const std::string each : {".weight", ".bias"}) expected.insert("mixer." + of + each);
  for (const std::string head : {"0", "1"})
    for (const std::string each : {"key", "query", "value", "beta"})
      expected.insert("mixer.slow." + head + "." + each);
  CHECK(names_of(network) == expected);
}

TEST_CASE("fast weights: what they refuse", "[networks]") {
  const auto refused = [](const Function& f, const std::string& what) {
    CHECK_THROWS_WITH(network_of(4, f), ContainsSubstring(what));
  };
  const fw::MemoryOptions sizes{.key_size = 4};
  refused(layer("DeltaRule", sizes, {.heads = 2}), "expected at most 2");
  refused(
      [](const auto& x) {
        using S = ScalarOf<decltype(x)>;
        return fast_weights(x, "mixer", fw::DeltaRule<S>({.key_size = 4}));
      },
      "mixer: DeltaRule is unstable with keys of IdentityMap");
  refused(layer("DeltaRule", sizes, {.key_size = 3}, fw::L2Normalise()), "features");
  refused(layer("DeltaRule", sizes, {.heads = 0}, fw::L2Normalise()), "heads");
  refused(layer("SelfReferentialMatrix", sizes, {}), "self_referential() learns the first state");
  network_of(4, layer("DeltaRule", sizes, {.allow_unstable = true}));
}

TEST_CASE("a self-referential layer: gradients, also of its first matrices", "[networks]") {
  const Function f = [](const auto& x) { return self_referential(x, "mixer", 2); };
  check_operation(4, f);
  const Net network = network_of(4, f);
  CHECK(names_of(network) ==
        std::set<std::string>{"mixer.initial.0.W", "mixer.initial.1.W", "mixer.output.weight"});
  fw::Random random(3);
  const Matrix<double> x = random_matrix(4, 3, random), dy = random_matrix(4, 3, random);
  State state = network.initial_state();
  Net::Trace trace;
  Net grad = fw::zero_gradient(network);
  run(network, state, x, trace, fw::Pass::train);
  network.backward(trace, dy, grad);
  ComplexNet twin = complex_network_of(network, f);
  ComplexNet::Trace complex_trace;
  const auto loss = [&] {
    State start = twin.initial_state();
    return run(twin, start, Matrix<Complex>(x.cast<Complex>()), complex_trace)
        .cwiseProduct(dy.cast<Complex>())
        .sum();
  };
  for (std::size_t i = 0; i < network.weights.size(); ++i) {
    INFO(network.weights[i].name);
    const Matrix<double> expected = derivatives(twin.weights[i].value, loss);
    CHECK(largest_entry(expected) > 0);
    check_equal(grad.weights[i].value, expected, 1e-10);
  }
}

TEST_CASE("a self-referential layer starts from its weights as they are then", "[networks]") {
  Net network = network_of(4, [](const auto& x) { return self_referential(x, "mixer", 2); });
  fw::Random random(4);
  const Matrix<double> x = random_matrix(4, 5, random);
  Net::Trace trace;
  State first = network.initial_state(), early = network.initial_state();
  const Matrix<double> before = run(network, first, x, trace);
  network.weights[0].value *= 2;
  State late = network.initial_state();
  const Matrix<double> after = run(network, early, x, trace);
  CHECK(after == run(network, late, x, trace));
  CHECK(after != before);
  CHECK_THROWS_WITH(network_of(7, [](const auto& v) { return self_referential(v, "mixer", 2); }),
                    ContainsSubstring("7 rows"));
}

TEST_CASE("a memory: what a learned first state must be", "[networks]") {
  const auto refused = [](Index rows, const std::string& what) {
    Builder<double> net;
    const auto x = net.input(2);
    const auto W = parameter(net, "W", rows);
    CHECK_THROWS_WITH(memory(fw::make_memory<double>("LinearAttention", {.key_size = 2}), {x, x},
                             {x}, "memory", LearnedState<double>({W}, Learned::first_state)),
                      ContainsSubstring(what));
  };
  refused(3, "arrays of the first state must be constant and divide among the states");
  Builder<double> net;
  const auto x = net.input(2);
  const auto rule = fw::make_memory<double>("LinearAttention", {.key_size = 2});
  CHECK_THROWS_WITH(memory(rule, {x, x}, {x}, "memory", LearnedState<double>({x})),
                    ContainsSubstring("has no slow weights"));
  const auto cache = fw::AnyMemory<double>(fw::KeyValueCache<double>({.key_size = 2}, {}));
  CHECK_THROWS_WITH(
      memory(cache, {x, x}, {x}, "memory", LearnedState<double>({x}, Learned::first_state)),
      ContainsSubstring("memory: the state of KeyValueCache grows"));
}

}  // namespace
