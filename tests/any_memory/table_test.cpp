#include <algorithm>
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
