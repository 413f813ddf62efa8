#include <fastweights/any_memory/table/deltas.hpp>
#include <fastweights/io/weights.hpp>
#include <fastweights/training/adamw.hpp>

#include "networks/operation_checks.hpp"

namespace {

using namespace fw::networks;
using namespace operation_checks;
using X = Value<double>;
using Catch::Matchers::ContainsSubstring;
using fw::io::SafeTensors;
using fw::io::SafeTensorsError;
using fw::io::SafeTensorsWriter;

// Every kind of state: recent tokens, memories and a cache, whose context is short.
X block(const X& x) {
  const X y = silu(convolution(linear(x, "in_proj", 6), "conv", 3));
  const X b = sigmoid(linear(token_shift(x), "b_proj", 3));
  const X a = memory(fw::DeltaRule<double>({2, 2}), {l2(y, 3), y, b}, {y});
  return linear(concatenate<double>({a, attention(y, y, y, 3, 4)}), "out_proj", x.rows());
}
X two_blocks(const X& x) {
  const X y = module("layers.0", rotary_embedding(x, 1, 2, 10), block);
  return module("layers.1", x + y, block);
}
Net network() { return network_of(3, two_blocks); }

SafeTensors written(const SafeTensorsWriter& writer) { return SafeTensors::parse(writer.bytes()); }

SafeTensors saved(const State& state) {
  SafeTensorsWriter writer;
  fw::io::add_state(writer, state, "stream");
  return written(writer);
}

std::vector<std::byte> saved_bytes(const State& state) {
  SafeTensorsWriter writer;
  fw::io::add_state(writer, state);
  return writer.bytes();
}

Matrix<double> tokens_of(Index steps, std::uint64_t seed) {
  fw::Random random(seed);
  return random_matrix(3, 2 * steps, random);
}

TEST_CASE("vectors of a network are vectors in files, and AdamW does not decay them",
          "[networks]") {
  Net network = network_of(3, [](const auto& x) {
    return linear(layer_norm(x, "norm", {.bias = true}), "out", 2, true);
  });
  SafeTensorsWriter writer;
  fw::io::add_parameters(writer, network, "model");
  const SafeTensors file = written(writer);
  using Shape = std::vector<Index>;
  CHECK(file.shape("model.norm.weight") == Shape{3});
  CHECK(file.shape("model.out.bias") == Shape{2});
  CHECK(file.shape("model.out.weight") == Shape{2, 3});

  const Net before = network;
  fw::AdamW<Net> optimiser(network, {.weight_decay = 0.5});
  Net no_gradient = fw::zero_gradient(network);
  optimiser.step(network, no_gradient, 0.1);
  for (std::size_t i = 0; i < network.weights.size(); ++i) {
    const auto& weight = network.weights[i];
    INFO(weight.name);
    const double kept = weight.axes.size() == 1 ? 1 : 0.95;
    check_equal(weight.value, kept * before.weights[i].value, 1e-15);
  }
}

TEST_CASE("save then load is the identity for a network", "[networks]") {
  const Net given = network();
  Net loaded = given;
  for (auto& weight : loaded.weights) weight.value.setConstant(not_a_number);
  SafeTensorsWriter writer;
  fw::io::add_parameters(writer, given, "model");
  const SafeTensors file = written(writer);
  CHECK(file.names().size() == given.weights.size());
  CHECK(file.contains("model.layers.1.conv.weight"));
  fw::io::load_parameters(loaded, file, "model");
  for (std::size_t i = 0; i < given.weights.size(); ++i)
    CHECK(loaded.weights[i].value == given.weights[i].value);
  State a = given.initial_state(2), b = loaded.initial_state(2);
  Net::Trace trace;
  const Matrix<double> x = tokens_of(3, 1);
  CHECK(run(given, a, x, trace) == run(loaded, b, x, trace));
}

TEST_CASE("weights that do not fit are refused, and the network stays as it was", "[networks]") {
  const Net given = network();
  Net changed = given;
  changed.weights[2].value.resize(1, 1);
  SafeTensorsWriter writer;
  fw::io::add_parameters(writer, changed);
  Net loaded = given;
  CHECK_THROWS_AS(fw::io::load_parameters(loaded, written(writer)), SafeTensorsError);
  CHECK_THROWS_WITH(fw::io::load_parameters(loaded, written(writer)),
                    ContainsSubstring(given.weights[2].name));
  for (std::size_t i = 0; i < given.weights.size(); ++i)
    CHECK(loaded.weights[i].value == given.weights[i].value);
}

TEST_CASE("a stream continues from its saved state with the same bits", "[networks]") {
  const Net net = network();
  for (const Index before : {0, 1, 3, 9}) {
    State state = net.initial_state(2), loaded = net.initial_state(2);
    Net::Trace trace, other_trace;
    if (before > 0) run(net, state, tokens_of(before, 1), trace);
    fw::io::load_state(loaded, saved(state), "stream");
    CHECK(loaded.positions == Positions::Constant(2, before));
    for (const Index steps : {1, 5, 1})
      CHECK(run(net, state, tokens_of(steps, 2), trace) ==
            run(net, loaded, tokens_of(steps, 2), other_trace));
    CHECK(saved_bytes(loaded) == saved_bytes(state));
  }
}

TEST_CASE("a state that has grown is saved, loaded and copied with its room", "[networks]") {
  const Net net = network_of(3, [](const X& x) { return attention(x, x, x, 1, {.capacity = 2}); });
  State state = net.initial_state(2), loaded = net.initial_state(2);
  Net::Trace trace;
  run(net, state, tokens_of(9, 1), trace);
  const State before = state;
  fw::io::load_state(loaded, saved(state), "stream");
  const Matrix<double> next = run(net, state, tokens_of(20, 2), trace);
  CHECK(run(net, loaded, tokens_of(20, 2), trace) == next);
  State back = before;
  CHECK(run(net, back, tokens_of(20, 2), trace) == next);
  // A window has its own number of columns.
  const Net window = network_of(3, [](const X& x) { return attention(x, x, x, 1, 2); });
  State other = window.initial_state(2);
  fw::io::load_state(other, saved(before), "stream");
  CHECK_THROWS_WITH(run(window, other, tokens_of(1, 2), trace),
                    ContainsSubstring("keys has 16 columns in the state, the memory expects 2"));
}

TEST_CASE("a state has the paths of the modules", "[networks]") {
  const SafeTensors file = saved(network().initial_state(2));
  for (const char* name : {"position", "layers.0.conv.recent", "layers.0.previous.recent",
                           "layers.0.memory.heads.0.W", "layers.0.memory.heads.5.W",
                           "layers.1.cache.heads.0.keys", "layers.1.cache.heads.5.values"})
    CHECK(file.contains(std::string("stream.") + name));
}

TEST_CASE("a copy of a state is another stream", "[networks]") {
  const Net net = network();
  State state = net.initial_state(2);
  Net::Trace trace;
  run(net, state, tokens_of(4, 1), trace);
  State copy = state, assigned = net.initial_state(2);
  assigned = state;
  run(net, state, tokens_of(2, 3), trace);
  const Matrix<double> y = run(net, copy, tokens_of(3, 2), trace);
  CHECK(run(net, assigned, tokens_of(3, 2), trace) == y);
  State& self = assigned;
  assigned = self;
  State moved = std::move(assigned);
  CHECK(run(net, moved, tokens_of(1, 4), trace) == run(net, copy, tokens_of(1, 4), trace));
}

TEST_CASE("a state that does not fit is refused, and nothing changes", "[networks]") {
  const Net net = network();
  State state = net.initial_state(2);
  Net::Trace trace;
  run(net, state, tokens_of(4, 1), trace);
  const auto refused = [&](const SafeTensors& file, const std::string& message) {
    State loaded = state;
    CHECK_THROWS_AS(fw::io::load_state(loaded, file, "stream"), SafeTensorsError);
    CHECK_THROWS_WITH(fw::io::load_state(loaded, file, "stream"), ContainsSubstring(message));
    CHECK(saved_bytes(loaded) == saved_bytes(state));
  };
  refused(saved(net.initial_state(3)), "position");
  refused(
      saved(
          network_of(3, [](const X& x) { return module("layers.0", x, block); }).initial_state(2)),
      "layers.1");
  State one = net.initial_state(), negative = one;  // of several, a pass refuses them
  negative.positions[0] = -1;
  CHECK_THROWS_WITH(fw::io::load_state(one, saved(negative), "stream"),
                    ContainsSubstring("position"));
}

TEST_CASE("a network refuses a state that its passes cannot reach before it is loaded",
          "[networks]") {
  const Net net = network();
  State state = net.initial_state(2);
  Net::Trace trace;
  run(net, state, tokens_of(4, 1), trace);
  State loaded = net.initial_state(2);
  fw::io::load_state(net, loaded, saved(state), "stream");
  CHECK(saved_bytes(loaded) == saved_bytes(state));
  const auto refused = [&](const Net& owner, State own, const State& given, const char* message) {
    const auto before = saved_bytes(own);
    CHECK_THROWS_AS(fw::io::load_state(owner, own, saved(given), "stream"), SafeTensorsError);
    CHECK_THROWS_WITH(fw::io::load_state(owner, own, saved(given), "stream"),
                      ContainsSubstring(message));
    CHECK(saved_bytes(own) == before);
  };
  State negative = state;
  negative.positions[1] = -1;
  refused(net, state, negative, "the state's position is -1");
  // The cache of another network has as many rows.
  const auto windowed = [](Index window) {
    return network_of(3, [=](const X& x) { return attention(x, x, x, 1, window); });
  };
  const Net narrow = windowed(2), wide = windowed(3);
  CHECK_NOTHROW(narrow.check_state(narrow.initial_state(2)));
  refused(narrow, narrow.initial_state(2), wide.initial_state(2), "columns");
  CHECK_THROWS_WITH(net.check_state(narrow.initial_state()), ContainsSubstring("members"));
  CHECK_THROWS_WITH(Net().check_state(State()), ContainsSubstring("is empty"));
}

TEST_CASE("a network checks a state that rolls back, and leaves it as it was", "[networks]") {
  const Net net = network();
  State state = net.initial_state({.sequences = 2, .roll_back = 3});
  Net::Trace trace;
  run(net, state, tokens_of(9, 1), trace);
  state.roll_back(2);
  const auto before = saved_bytes(state);
  CHECK_NOTHROW(net.check_state(state));
  CHECK(saved_bytes(state) == before);
  state.kept[1].left = 99;
  CHECK_THROWS_AS(net.check_state(state), std::invalid_argument);
}

// prefill reads a prompt in pieces.
TEST_CASE("reading a prompt gives its last output and its state", "[networks]") {
  Builder<double> builder;
  Net net = builder.build(two_blocks(embedding(builder, "embed", 5, 3)));
  fw::Random random(2);
  fw::initialise(net, random);
  std::vector<int> ids(14);
  for (int& id : ids) id = static_cast<int>(random.below(5));
  for (const Index piece : {1, 2, 3, 7, 100}) {
    State a = net.initial_state(2), b = net.initial_state(2);
    Net::Trace trace_a, trace_b;
    Matrix<double> all(3, 14), last(3, 2), next_a(3, 2), next_b(3, 2);
    net.forward(a, fw::Symbols(ids), all, trace_a);
    net.prefill(b, fw::Symbols(ids), last, trace_b, piece);
    check_equal(last.col(0), all.col(6), 1e-13);
    check_equal(last.col(1), all.col(13), 1e-13);
    CHECK(b.positions[0] == 7);
    const std::vector<int> next{1, 4};
    net.forward(a, fw::Symbols(next), next_a, trace_a);
    net.forward(b, fw::Symbols(next), next_b, trace_b);
    check_equal(next_a, next_b, 1e-13);
  }
}

}  // namespace
