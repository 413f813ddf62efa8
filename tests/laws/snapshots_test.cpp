#include <cstring>
#include <fastweights/core/snapshot.hpp>

#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/subject.hpp"

/// \file
/// Every memory: a snapshot gives the state back bit for bit, shares what did not change, and a
/// state of other sizes is refused unchanged.

namespace {

using fw::AnyState;
using fw::Snapshot;
using laws::Run;
using laws::Subject;

template <class Law> void for_every_memory(const Law& law) {
  const auto each = [&](const std::vector<Subject>& all) {
    for (const Subject& subject : all) {
      INFO(subject.text());
      law(subject);
    }
  };
  each(laws::subjects(5, 3));
  each(laws::subjects(4, 1));
  each(laws::subjects(33, 33));
  each(laws::variants());
}

TEST_CASE("a snapshot gives the state back bit for bit", "[laws]") {
  for_every_memory([](const Subject& subject) {
    Run<double> run(subject, 9, 7, 3);
    const AnyState<double> before = run.state;
    const Snapshot first(run.state);
    run.scan();
    const AnyState<double> after = run.state;
    const Snapshot second(run.state, first);
    first.restore(run.state);
    CHECK(run.state == before);
    CHECK(Snapshot(run.state).bytes() == first.bytes());
    second.restore(run.state);
    CHECK(run.state == after);
    run.state = run.memory.initial_state();  // a cache has other columns
    second.restore(run.state);
    CHECK(run.state == after);
  });
}

TEST_CASE("snapshots of one state share all pages, and of another state none that differ",
          "[laws]") {
  for_every_memory([](const Subject& subject) {
    Run<double> run(subject, 9, 7, 3);
    const Snapshot first(run.state);
    const Snapshot same(run.state, first), alone(run.state);
    CHECK(same.shared_bytes(first) == first.bytes());
    CHECK(alone.shared_bytes(first) == 0);
    const Snapshot copy = first;
    CHECK(copy.shared_bytes(first) == first.bytes());
    run.scan();
    const Snapshot later(run.state, first);
    CHECK(later.shared_bytes(first) < later.bytes());
  });
}

TEST_CASE("a snapshot refuses a state of other sizes, and changes nothing", "[laws]") {
  for_every_memory([](const Subject& subject) {
    Run<double> run(subject, 0, 7, 3);
    Subject larger = subject;
    larger.options.key_size += 6;  // two and three heads divide it
    if (larger.options.value_size > 0) larger.options.value_size += 6;
    const Snapshot other(larger.memory<double>().initial_state());
    const AnyState<double> before = run.state;
    const std::string error = error_of<std::invalid_argument>([&] { other.restore(run.state); });
    CHECK(error.starts_with("Snapshot: "));
    CHECK(error.find("expected") != std::string::npos);
    CHECK(run.state == before);
  });
}

TEST_CASE("a snapshot of another memory or scalar is refused", "[laws]") {
  const auto delta = fw::make_memory<double>("DeltaRule", {.key_size = 4});
  const auto single = fw::make_memory<float>("DeltaRule", {.key_size = 4});
  const auto cache = fw::make_memory<double>("KeyValueCache", {.key_size = 4});
  auto state = delta.initial_state();
  const auto error = [&](const Snapshot& snapshot) {
    return error_of<std::invalid_argument>([&] { snapshot.restore(state); });
  };
  CHECK(error(Snapshot(single.initial_state())) ==
        "Snapshot: W of the state has 4 x 4 entries, expected 4 x 4 of the same type");
  CHECK(error(Snapshot(cache.initial_state())).starts_with("Snapshot: the state has "));
  CHECK(error(Snapshot()) == "Snapshot: the state has 1 arrays and numbers, expected 0");
}

}  // namespace
