#include <algorithm>
#include <complex>
#include <fastweights/any_memory/table.hpp>
#include <set>

#include "support/catch.hpp"

namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;

TEST_CASE("every memory of the table can be made from its name and its options", "[table]") {
  std::set<std::string> seen;
  for (const std::string& name : fw::memory_names()) {
    INFO(name);
    CHECK(seen.insert(name).second);
    fw::MemoryOptions options{.key_size = 4};
    for (const fw::MemoryOption& option : fw::memory_options(name))
      options.more[option.name] = option.value;
    const auto memory = fw::make_memory<float>(name, options);
    CHECK(!memory.written().empty());
    CHECK(memory.can().has_roles);
    options.value_size = 7;
    if (fw::memory_facts(name).square)
      CHECK_THROWS_WITH(fw::make_memory<float>(name, options),
                        name + ": value_size is 7, expected key_size, 4");
    else
      CHECK(fw::make_memory<float>(name, options).given()[0].rows == 7);
  }
  CHECK(seen.size() >= 70);
  for (const std::string& name : fw::memory_names<double>()) CHECK(seen.count(name) == 1);
}

TEST_CASE("an option changes the memory that is made", "[table]") {
  const auto W_after_two_writes = [](double decay) {
    const auto m = fw::make_memory<double>(
        "HebbianMemory", {.key_size = 1, .more = {{"decay", decay}, {"rate", 1}}});
    auto state = m.initial_state();
    const double one = 1;
    double y = 0;
    m.write(state, {one, one});
    m.step(state, {one, one}, {one}, {y});
    return y;
  };
  CHECK(W_after_two_writes(0.5) == 1.5);
  CHECK(W_after_two_writes(0.25) == 1.25);
}

TEST_CASE("a memory in complex numbers only runs forwards, and says so", "[table]") {
  using Complex = std::complex<double>;
  const auto m = fw::make_memory<Complex>("DeltaRule", {.key_size = 1});
  CHECK(fw::make_memory<double>("DeltaRule", {.key_size = 1}).can().differentiable);
  const auto& can = m.can();
  CHECK(!(can.differentiable || can.traced_backward || can.chunkable || can.mergeable));
  std::vector<fw::AnyState<Complex>> states{m.initial_state()};
  auto& state = states[0];
  const Complex k(1, 0.5), v(2, 1), beta = 0.5;
  Complex y = 0;
  m.step(state, {k, v, beta}, {k}, {y});
  CHECK(std::abs(y - beta * v * k * k) <= 1e-15);
  const auto before = state;
  auto ds = m.zero_gradient();
  fw::AnyCheckpoints<Complex> checkpoints;
  Complex dk = 0, dv = 0, dbeta = 0, dq = 0;
  const std::string no = "DeltaRule has no ", end = " in complex numbers";
  CHECK_THROWS_WITH(m.scan(state, {k, v, beta}, {k}, {y}, checkpoints), no + "gradients" + end);
  CHECK_THROWS_WITH(m.backward(state, {k, v, beta}, {k}, {y}, ds, {dk, dv, dbeta}, {dq}),
                    no + "gradients" + end);
  CHECK_THROWS_WITH(m.chunked_scan(state, {k, v, beta}, {k}, {y}), no + "chunkwise form" + end);
  CHECK_THROWS_WITH(m.parallel_scan(state, {k, v, beta}, {k}, {y}, 2),
                    no + "segments that merge" + end);
  CHECK_THROWS_WITH(m.step(std::span(states), {k, v, beta}, {k}, {y}),
                    no + "steps of several streams" + end);
  CHECK(state == before);
}

TEST_CASE("unknown names and options are errors that list the known ones", "[table]") {
  CHECK_THROWS_WITH(fw::make_memory<float>("DeltaRul", {.key_size = 4}),
                    StartsWith("unknown memory DeltaRul, expected one of ") &&
                        ContainsSubstring("DeltaRule, VectorDeltaRule"));
  CHECK_THROWS_WITH(
      fw::make_memory<float>("HebbianMemory", {.key_size = 4, .more = {{"rates", 1}}}),
      "HebbianMemory: unknown option rates, expected one of key_size, value_size, decay, rate");
  CHECK_THROWS_WITH(
      fw::make_memory<float>("KeyValueCache", {.key_size = 4, .more = {{"capacity", 2.5}}}),
      "KeyValueCache: capacity is 2.5, expected a whole number");
  CHECK_THROWS_WITH(
      fw::make_memory<float>("KeyValueCache", {.key_size = 4, .more = {{"refuse", 2}}}),
      "KeyValueCache: refuse is 2, expected 0 or 1");
  CHECK_THROWS_WITH(fw::make_memory<float>("DeltaRule", {}),
                    ContainsSubstring("expected at least 1"));
  const auto in_double = fw::memory_names<double>();
  CHECK(std::find(in_double.begin(), in_double.end(), "EightBitDeltaRule") == in_double.end());
  CHECK_THROWS_WITH(fw::make_memory<double>("EightBitDeltaRule", {.key_size = 4}),
                    StartsWith("unknown memory"));
}

}  // namespace
