#include <cmath>
#include <fastweights/core/snapshot.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <limits>
#include <unsupported/Eigen/AutoDiff>

#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/every_memory.hpp"

/// \file
/// Every memory: a snapshot gives the state back, shares what did not change, and a state of other
/// sizes is refused unchanged.

namespace {

using fw::AnyState;
using fw::Index;
using fw::Snapshot;
using laws::for_every_memory;
using laws::in_float_and_double;
using laws::Run;
using laws::Subject;

const laws::SizePairs sizes{{5, 3}, {4, 1}, {33, 33}};

TEST_CASE("a snapshot gives the state back", "[laws]") {
  in_float_and_double(sizes, []<class S>(S, const Subject& subject) {
    Run<S> run(subject, 9, 7, 3);
    const AnyState<S> before = run.state;
    const Snapshot first(run.state);
    run.scan();
    const AnyState<S> after = run.state;
    const Snapshot second(run.state, first);
    first.restore(run.state);
    CHECK(run.state == before);
    CHECK(Snapshot(run.state).bytes() == first.bytes());
    second.restore(run.memory, run.state);
    CHECK(run.state == after);
    run.state = run.memory.initial_state();  // a cache has other columns
    second.restore(run.state);
    CHECK(run.state == after);
  });
}

TEST_CASE("a later snapshot of the same numbers shares all of them", "[laws]") {
  in_float_and_double(sizes, []<class S>(S, const Subject& subject) {
    Run<S> run(subject, 9, 7, 3);
    const Snapshot first(run.state);
    CHECK(Snapshot(run.state, first).shared_bytes(first) == first.bytes());
    const Snapshot copy = first;
    CHECK(copy.shared_bytes(first) == first.bytes());
    run.scan();
    const Snapshot later(run.state, first);
    CHECK(later.shared_bytes(first) < later.bytes());
  });
}

using Delta = fw::DeltaRule<double>;
fw::StateOf<Delta> state_of(Index size) {
  auto state = fw::initial_state(Delta({.key_size = size}));
  state.W.setRandom();
  return state;
}

TEST_CASE("a snapshot shares all pages but those that differ", "[laws]") {
  auto state = state_of(65);  // 33,800 bytes: eight pages and a part of one
  const Snapshot first(state);
  CHECK(first.bytes() == 65 * 65 * 8);
  CHECK(Snapshot(state).shared_bytes(first) == 0);
  state.W(0, 10) += 1;  // entry 650 of page 1
  const Snapshot second(state, first);
  CHECK(second.bytes() - second.shared_bytes(first) == 4096);
  state.W(64, 64) += 1;  // in the part
  const Snapshot third(state, second);
  CHECK(third.bytes() - third.shared_bytes(second) == 65 * 65 * 8 - 8 * 4096);
  CHECK(third.bytes() - third.shared_bytes(first) == 65 * 65 * 8 - 7 * 4096);
  auto one_page = state_of(32);  // 8,192 bytes: two whole pages
  const Snapshot whole(one_page);
  one_page.W(31, 31) += 1;
  CHECK(Snapshot(one_page, whole).shared_bytes(whole) == 4096);
  one_page.W.setZero();
  CHECK(Snapshot(one_page).shared_bytes(Snapshot(fw::initial_state(Delta({.key_size = 32})))) ==
        2 * 4096);  // zeros
}

TEST_CASE("a snapshot keeps every bit, and is a value", "[laws]") {
  auto state = state_of(3);
  state.W(0, 0) = -0.0;
  state.W(1, 1) = std::numeric_limits<double>::quiet_NaN();
  state.W(2, 2) = -std::numeric_limits<double>::infinity();
  Snapshot snapshot(state);
  Snapshot moved = std::move(snapshot);
  snapshot = Snapshot(state_of(4));
  state.W.setOnes();
  moved.restore(state);
  CHECK(std::signbit(state.W(0, 0)));
  CHECK(std::isnan(state.W(1, 1)));
  CHECK(state.W(2, 2) == -std::numeric_limits<double>::infinity());
}

TEST_CASE("a snapshot refuses a state of other sizes, and changes nothing", "[laws]") {
  for_every_memory<double>(sizes, [](const Subject& subject) {
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
        "Snapshot: W of the state has numbers of 8 bytes, expected 4 bytes and the type of those "
        "taken");
  CHECK(error(Snapshot(cache.initial_state())).starts_with("Snapshot: the state has "));
  CHECK(error(Snapshot()) == "Snapshot: the state has 1 arrays or numbers, expected 0");
}

TEST_CASE("a snapshot refuses scalars whose bytes are not their value", "[laws]") {
  using Dual = Eigen::AutoDiffScalar<Eigen::VectorXd>;
  const fw::DeltaRule<Dual> memory({.key_size = 2});
  CHECK_THROWS_WITH(Snapshot(fw::initial_state(memory)),
                    "Snapshot: the bytes of W are not its value, expected numbers such as float");
}

TEST_CASE("a memory refuses a snapshot that none of its tokens reach", "[laws]") {
  const auto cache = [](double capacity) {
    return fw::make_memory<double>(
        "KeyValueCache", {.key_size = 2, .more = {{"capacity", capacity}, {"refuse", 1}}});
  };
  const auto small = cache(4), large = cache(8);
  const Run<double> run(large, large.initial_state(), false, 0, 7, 3);
  const Snapshot snapshot(run.state);
  auto state = small.initial_state();
  const auto before = state;
  CHECK_THROWS_AS(snapshot.restore(small, state), std::invalid_argument);
  CHECK(state == before);
  auto own = large.initial_state();
  snapshot.restore(large, own);
  CHECK(own == run.state);
}

}  // namespace
