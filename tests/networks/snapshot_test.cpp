#include <fastweights/any_memory/table/deltas.hpp>
#include <fastweights/core/snapshot.hpp>
#include <fastweights/networks/operations.hpp>

#include "networks/operation_checks.hpp"

/// \file
/// Snapshots of the state of a whole network.

namespace {

using namespace fw::networks;
using namespace operation_checks;
using X = Value<double>;
using fw::Snapshot;

// A cache that grows, a window, a memory and a convolution.
Net network() {
  Builder<double> builder;
  const X x = builder.input(16);
  const X y = convolution(linear(x, "in", 16), "conv", 3);
  const X near = module("window", y, [](const X& v) { return attention(v, v, v, 2, 4, 1.0); });
  const X far = attention(y, y, y, 2, {.capacity = 2});
  const X rule =
      memory(fw::DeltaRule<double>({8, 8}), {l2(y, 2), y, sigmoid(linear(x, "b", 2))}, {y});
  Net net = builder.build(linear(near + far + rule, "out", 3));
  fw::Random random(2);
  fw::initialise(net, random);
  return net;
}

struct Stream {
  Net net = network();
  State state;
  Net::Trace trace = {};
  fw::Random random = fw::Random(4);

  Matrix<double> tokens(Index count) { return random_matrix(16, count, random); }
  Matrix<double> read(const Matrix<double>& x, std::span<const Index> lengths = {}) {
    Matrix<double> y(3, x.cols());
    net.forward(state, x, y, trace, {.lengths = lengths});
    return y;
  }
  // The snapshot after so many more tokens.
  Snapshot after(Index count, const Snapshot& before = {}) {
    read(tokens(count));
    return Snapshot(state, before);
  }
};

// Bytes of a snapshot that it does not share.
std::size_t own_bytes(const Snapshot& snapshot, const Snapshot& with) {
  return snapshot.bytes() - snapshot.shared_bytes(with);
}

TEST_CASE("a network goes on from a snapshot as if nothing had come after it", "[networks]") {
  Stream stream;
  stream.state = stream.net.initial_state({.roll_back = 2});
  const Matrix<double> prompt = stream.tokens(9), question = stream.tokens(5);
  stream.read(prompt);
  const Snapshot before(stream.state);
  const Matrix<double> answer = stream.read(question);
  const Snapshot after(stream.state, before);
  stream.read(stream.tokens(40));  // the cache grows
  before.restore(stream.state);
  CHECK(stream.read(question) == answer);
  State fresh = stream.net.initial_state({.roll_back = 2});
  before.restore(fresh);
  stream.state = std::move(fresh);
  CHECK(stream.read(question) == answer);
  const Matrix<double> next = stream.tokens(3), y = stream.read(next);
  after.restore(stream.state);
  CHECK(stream.read(next) == y);
}

TEST_CASE("snapshots of many streams, one of which goes on", "[networks]") {
  Stream stream;
  stream.state = stream.net.initial_state({.sequences = 3});
  stream.read(stream.tokens(12), std::vector<Index>{5, 0, 7});
  const Snapshot before(stream.state);
  const Matrix<double> more = stream.tokens(4);
  const Matrix<double> y = stream.read(more, std::vector<Index>{0, 4, 0});
  before.restore(stream.state);
  CHECK(stream.read(more, std::vector<Index>{0, 4, 0}) == y);
}

// A page for every array of every head, at most, besides the memories.
constexpr std::size_t few_bytes = 80'000;

TEST_CASE("the snapshot of a long cache takes the memory of the new tokens", "[networks]") {
  Stream stream;
  stream.state = stream.net.initial_state();
  const Snapshot prompt = stream.after(3000), asked = stream.after(2, prompt);
  CHECK(asked.bytes() > 500'000);
  CHECK(own_bytes(asked, prompt) < few_bytes);
}

TEST_CASE("a cache that has just grown shares the tokens and the zeros of its room", "[networks]") {
  Stream stream;
  stream.state = stream.net.initial_state();
  const Snapshot prompt = stream.after(4096), asked = stream.after(1, prompt),
                 again = stream.after(1, asked);
  CHECK(asked.bytes() > prompt.bytes());
  CHECK(own_bytes(again, asked) < few_bytes);
}

TEST_CASE("a network refuses a snapshot that rolls back another number of tokens", "[networks]") {
  Stream stream;
  stream.state = stream.net.initial_state({.roll_back = 8});
  stream.read(stream.tokens(9));
  const Snapshot snapshot(stream.state);
  State other = stream.net.initial_state({.roll_back = 2});
  const State before = other;
  CHECK_THROWS_AS(snapshot.restore(stream.net, other), std::invalid_argument);
  CHECK(fw::detail::equal(fw::detail::object(other), fw::detail::object(before)));
  snapshot.restore(stream.net, stream.state);
}

TEST_CASE("a snapshot refuses the state of another network or of other streams", "[networks]") {
  Stream stream;
  stream.state = stream.net.initial_state();
  const Snapshot one(stream.state);
  State three = stream.net.initial_state({.sequences = 3});
  const State before = three;
  CHECK_THROWS_AS(one.restore(three), std::invalid_argument);
  CHECK(fw::detail::equal(fw::detail::object(three), fw::detail::object(before)));
  Builder<double> builder;
  const X x = builder.input(16);
  State other = builder.build(convolution(x, "conv", 4)).initial_state();
  CHECK_THROWS_WITH(one.restore(other), Catch::Matchers::StartsWith("Snapshot: "));
}

}  // namespace
