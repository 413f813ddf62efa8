#include <fastweights/any_memory/table/deltas.hpp>
#include <fastweights/any_memory/table/gated.hpp>
#include <fastweights/io/weights.hpp>
#include <fastweights/networks/operations.hpp>

#include "networks/operation_checks.hpp"

namespace {

using namespace fw::networks;
using namespace operation_checks;
using X = Value<double>;
using Catch::Matchers::ContainsSubstring;

void refused(const std::function<void()>& f, const std::string& message) {
  CHECK_THROWS_AS(f(), std::invalid_argument);
  CHECK_THROWS_WITH(f(), ContainsSubstring(message));
}

TEST_CASE("a builder refuses a name with two shapes", "[networks]") {
  Builder<double> net;
  const X x = net.input(3);
  linear(x, "map", 3);
  refused([&] { linear(x, "map", 4); }, "map.weight: is shared with another shape");
  refused([&] { parameter(net, "map.weight", 9); }, "map.weight: is shared with another shape");
}

TEST_CASE("a builder refuses sizes that are 0, negative or absurd", "[networks]") {
  Builder<double> net;
  const X x = net.input(3);
  const Index huge = std::numeric_limits<Index>::max();
  for (const Index rows : {Index(0), Index(-1), (Index(1) << 24) + 1, huge, -huge}) {
    refused([&] { Builder<double>().input(rows); }, "rows");
    refused([&] { linear(x, "mixer.map", rows); }, "");
    refused([&] { parameter(net, "p", rows); }, "");
    refused([&] { embedding(net, "embed", 10, rows); }, "");
    refused([&] { constants(net, {}); }, "rows");
  }
  const Initialiser draw = constant_initialiser(0);
  using Axes = std::vector<Index>;
  for (const Axes& axes : {Axes{0}, Axes{-3}, Axes{-2, -3}, Axes{2, 0}, Axes{huge}, Axes{huge, 4},
                           Axes{1 << 20, 1 << 20, 1 << 20, 1 << 20}})
    refused([&] { net.weight("w", axes, draw); }, "w: has too many entries, or none");
  CHECK(net.weight("w", {3}, draw) == net.weight("w", {3}, draw));  // as if nothing had happened
}

TEST_CASE("a builder makes one network, and nothing after it", "[networks]") {
  Builder<double> net;
  const X x = net.input(3), y = linear(x, "map", 3);
  auto network = net.build(y);
  const std::string built = "the network is built already";
  refused([&] { net.build(y); }, built);
  refused([&] { net.build(x); }, built);
  refused([&] { tanh(x); }, built);
  refused([&] { x + y; }, built);
  refused([&] { linear(y, "other", 3); }, built);
  refused([&] { module("part", x, [](const X& v) { return tanh(v); }); }, built);
  refused([&] { net.input(3); }, built);
  refused([&] { net.take_symbols(3); }, built);
  refused([&] { net.weight("w", {3}, constant_initialiser(0)); }, built);
  refused([&] { net.share_weights("map", "other"); }, built);
  refused([&] { net.buffer_rows(y); }, built);
  fw::Random random(1);
  network.initialise(random);  // it is as it was
  auto state = network.initial_state();
  Network<double>::Trace trace;
  const Eigen::MatrixXd in = Eigen::MatrixXd::Ones(3, 2);
  Eigen::MatrixXd out(3, 2);
  network.forward(state, in, out, trace);
  CHECK(out == network.weights[0].value * in);
}

TEST_CASE("a builder refuses to leave what was not entered", "[networks]") {
  const std::string expected = "leave() without enter() before it";
  Builder<double> net;
  refused([&] { net.leave(); }, "Builder: " + expected);
  net.enter("a");
  net.leave();
  refused([&] { net.leave(); }, expected);
  const X x = net.input(3);
  refused([&] { module("part", x, [&](const X& v) { return net.leave(), v; }); },
          "part: " + expected);
  Builder<double> other;
  const X z = other.input(3);
  const auto network = other.build(linear(module("part", z,
                                                 [&](const X& v) {
                                                   other.enter("b");
                                                   return linear(v, "map", 3);
                                                 }),
                                          "last", 3));
  CHECK(network.weights[0].name == "part.b.map.weight");
  CHECK(network.weights[1].name == "last.weight");
}

TEST_CASE("a value of no network", "[networks]") {
  const std::string expected = "Value: belongs to no network";
  const X none;
  Builder<double> net;
  const X x = net.input(3);
  refused([&] { tanh(none); }, expected);
  refused([&] { linear(none, "map", 3); }, expected);
  refused([&] { none + none; }, expected);
  refused([&] { none.rows_of(0, 1); }, expected);
  refused([&] { none.rows_of_part(2); }, expected);
  refused([&] { rms_norm(none, "norm", {}); }, expected);
  refused([&] { module("part", none, [](const X& v) { return v; }); }, expected);
  refused([&] { concatenate<double>({none, x}); }, expected);
  refused([&] { concatenate<double>({x, none}); }, expected);
  refused([&] { net.build(none); }, "a value is that of another builder");
}

TEST_CASE("a network of no builder", "[networks]") {
  Network<double> none;
  const std::string expected = "Network: is empty, expected one that Builder::build made";
  Network<double>::Trace trace;
  fw::networks::State state;
  Eigen::MatrixXd x(1, 1), y(1, 1);
  const std::vector<int> ids{0};
  refused([&] { none.initial_state(); }, expected);
  refused([&] { none.inputs(); }, expected);
  refused([&] { none.outputs(); }, expected);
  refused([&] { none.quantisable(); }, expected);
  refused([&] { none.quantise(WeightType::int8); }, expected);
  refused([&] { none.forward(state, x, y, trace); }, expected);
  refused([&] { none.forward(state, fw::Symbols(ids), y, trace); }, expected);
  refused([&] { none.prefill(state, fw::Symbols(ids), y, trace); }, expected);
  refused([&] { none.backward(trace, y, none); }, "needs a train pass");
}

TEST_CASE("a norm refuses an ε that gives NaN or zeros", "[networks]") {
  Builder<float> net;
  const Value<float> x = net.input(4);
  for (const double epsilon : {0.0, -1.0, 1e-60, HUGE_VAL, std::nan("")})
    refused([&] { rms(x, 1, epsilon); }, "a norm: epsilon is ");
}

// The two operations would have one place in a saved state.
TEST_CASE("a builder refuses two states of one name", "[networks]") {
  Builder<double> net;
  const X x = net.input(2);
  const X y = token_shift(x, "before");
  refused([&] { token_shift(y, "before"); }, "before");
  CHECK_NOTHROW(module("other", y, [](const X& v) { return token_shift(v, "before"); }));
}

TEST_CASE("a builder refuses values that do not go together", "[networks]") {
  Builder<double> net, other;
  const X x = net.input(4), y = other.input(4), p = parameter(net, "p", 4);
  refused([&] { x + y; }, "another builder");
  refused([&] { net.build(y); }, "another builder");
  refused([&] { net.build(sigmoid(p)); }, "the output is the same for all tokens");
  refused([&] { concatenate<double>({x, p}); }, "takes a constant and a value of tokens");
  refused(
      [&] {
        memory(fw::GatedLinearAttention<double>({2, 2}), {x, x, p}, {x});
      },
      "is constant, expected one a token");
  refused(
      [&] {
        memory(fw::GatedLinearAttention<double>({2, 2}), {x, x, y}, {x});
      },
      "another builder");
  refused([&] { top_k_experts(x, {}, {y}); }, "another builder");
  refused([&] { module("m", x, [&](const X&) { return y; }); }, "another builder");
  refused([&] { token_shift(p, "before"); }, "a constant has no tokens before it");
  refused([&] { rotary_embedding(p, 1, 4, 1e4); }, "a constant has no tokens before it");
  CHECK(net.path("w") == "w");  // not inside of the module that failed
  CHECK_NOTHROW(net.build(x + sigmoid(p)));
}

TEST_CASE("a builder refuses a second input", "[networks]") {
  Builder<double> vectors, symbols;
  vectors.input(3);
  refused([&] { vectors.input(3); }, "has an input already");
  refused([&] { embedding(vectors, "embed", 5, 3); }, "has another input already");
  embedding(symbols, "embed", 5, 3);
  CHECK_NOTHROW(embedding(symbols, "other", 5, 3));
  refused([&] { embedding(symbols, "larger", 6, 3); }, "has another input already");
  refused([&] { symbols.input(3); }, "has an input already");
}

TEST_CASE("a module inside of another may have its weights", "[networks]") {
  Builder<double> net;
  const X x = module("a", net.input(3), [](const X& v) { return linear(v, "map", 3); });
  net.share_weights("a", "a.b");
  const X y = module("a", x, [](const X& v) {
    return module("b", v, [](const X& w) { return linear(w, "map", 3); });
  });
  CHECK(net.build(y).weights.size() == 1);
}

TEST_CASE("experts are chosen from groups that have as many", "[networks]") {
  Builder<double> net;
  const X scores = net.input(8);
  refused([&] { top_k_experts(scores, {.experts = 5, .groups = 4, .best_groups = 2}); },
          "cannot choose 5 of 8 experts in 4 groups");
  CHECK_NOTHROW(top_k_experts(scores, {.experts = 4, .groups = 4, .best_groups = 2}));
}

// A network with a state in the middle, that takes vectors or symbols.
X layers(const X& x) {
  const X y = convolution(tanh(linear(x, "map", 4)), "conv", 3);
  return memory(fw::GatedLinearAttention<double>({2, 2}), {y, y, sigmoid(y)}, {y});
}
Net layer_network() { return network_of(3, layers); }
Net model_network() {
  Builder<double> builder;
  Net network = builder.build(layers(embedding(builder, "embed", 5, 3)));
  fw::Random random(2);
  fw::initialise(network, random);
  return network;
}

Net::State used_state(const Net& network) {
  State state = network.initial_state(2);
  fw::Random random(4);
  Net::Trace trace;
  run(network, state, random_matrix(3, 4, random), trace);
  return state;
}

void check_same(const State& given, const State& expected) {
  fw::io::SafeTensorsWriter a, b;
  fw::io::add_state(a, given);
  fw::io::add_state(b, expected);
  CHECK(a.bytes() == b.bytes());
}

// f(state, trace) throws an error with this message and changes no state.
template <class F> void refused_pass(const State& given, const F& f, const std::string& message) {
  State state = given;
  Net::Trace trace;
  refused([&] { f(state, trace); }, message);
  check_same(state, given);
}

TEST_CASE("a network refuses ids that are out of range", "[networks]") {
  const Net network = model_network();
  State state = network.initial_state();
  Net::Trace trace;
  Matrix<double> y(4, 2);
  const std::vector<int> good{4, 0};
  network.forward(state, fw::Symbols(good), y, trace);
  for (const std::vector<int>& ids :
       {std::vector<int>{0, 5}, {-1, 0}, {std::numeric_limits<int>::max(), 0}, {0, 1 << 31}})
    refused_pass(
        state, [&](State& s, Net::Trace& t) { network.forward(s, fw::Symbols(ids), y, t); },
        "expected 0 to 4");
}

TEST_CASE("a network refuses inputs of another kind or size", "[networks]") {
  const Net network = layer_network(), model = model_network();
  const State state = used_state(network), model_state = model.initial_state(2);
  const auto refused_sizes = [&](Index x_rows, Index x_cols, Index y_rows, Index y_cols,
                                 const std::string& message) {
    const Matrix<double> x = Matrix<double>::Zero(x_rows, x_cols);
    Matrix<double> y(y_rows, y_cols);
    refused_pass(
        state, [&](State& s, Net::Trace& t) { network.forward(s, x, y, t); }, message);
  };
  refused_sizes(4, 2, 4, 2, "x has 4 rows");
  refused_sizes(3, 2, 5, 2, "y has 5 rows");
  refused_sizes(3, 2, 4, 4, "y has 4 columns");
  refused_sizes(3, 0, 4, 0, "x");
  refused_sizes(3, 3, 4, 3, "sequences");  // two sequences of one and a half tokens

  Matrix<double> y(4, 2);
  const Matrix<double> x = Matrix<double>::Zero(3, 2);
  const std::vector<int> ids{1, 2}, none;
  refused_pass(
      state, [&](State& s, Net::Trace& t) { network.forward(s, fw::Symbols(ids), y, t); },
      "given the symbols, the network takes vectors");
  refused_pass(
      model_state, [&](State& s, Net::Trace& t) { model.forward(s, x, y, t); },
      "given x, the network takes symbols");
  refused_pass(
      model_state, [&](State& s, Net::Trace& t) { model.forward(s, fw::Symbols(none), y, t); },
      "ids");
}

TEST_CASE("a network without weights refuses to run", "[networks]") {
  Builder<double> builder;
  const Net network = builder.build(layers(builder.input(3)));
  const Matrix<double> x = Matrix<double>::Zero(3, 2);
  Matrix<double> y(4, 2);
  refused_pass(
      network.initial_state(), [&](State& s, Net::Trace& t) { network.forward(s, x, y, t); },
      "map.weight is not set");
}

TEST_CASE("a quantised network refuses to be trained or saved", "[networks]") {
  Net network = layer_network();
  network.quantise(WeightType::int8);
  const Matrix<double> x = Matrix<double>::Zero(3, 2);
  Matrix<double> y(4, 2);
  State state = network.initial_state();
  Net::Trace trace;
  CHECK_NOTHROW(network.forward(state, x, y, trace));
  refused_pass(
      state, [&](State& s, Net::Trace& t) { network.forward(s, x, y, t, fw::Pass::train); },
      "map.weight is quantised");
  fw::io::SafeTensorsWriter writer;
  refused([&] { fw::io::add_parameters(writer, network); }, "map.weight is quantised");
}

TEST_CASE("a network refuses backward without a train pass before", "[networks]") {
  const Net network = layer_network();
  const Matrix<double> x = Matrix<double>::Zero(3, 2), dy = Matrix<double>::Zero(4, 2);
  Matrix<double> dx(3, 2), y(4, 2);
  Net grad = fw::zero_gradient(network);
  Net::Trace trace;
  refused([&] { network.backward(x, trace, dy, dx, grad); }, "train pass");
  refused([&] { network.backward(trace, dy, grad); }, "train pass");
  refused([&] { network.backward(trace, Matrix<double>(4, 0), grad); }, "train pass");
  State state = network.initial_state();
  network.forward(state, x, y, trace, fw::Pass::train);
  network.forward(state, x, y, trace);  // replaces what the trace has
  refused([&] { network.backward(x, trace, dy, dx, grad); }, "train pass");
  network.forward(state, x, y, trace, fw::Pass::train);
  const Matrix<double> bad_x = Matrix<double>::Zero(4, 2);
  refused([&] { network.forward(state, bad_x, y, trace); }, "x has 4 rows");
}

TEST_CASE("a network refuses gradients of other sizes, and changes none", "[networks]") {
  const Net network = layer_network();
  const Matrix<double> x = Matrix<double>::Ones(3, 4), dy = Matrix<double>::Ones(4, 4);
  Matrix<double> dx = Matrix<double>::Ones(3, 4), y(4, 4);
  Net grad = fw::zero_gradient(network);
  Net::Trace trace;
  State state = network.initial_state();
  network.forward(state, x, y, trace, fw::Pass::train);
  const Matrix<double> wide = Matrix<double>::Ones(4, 5), low = Matrix<double>::Ones(3, 4);
  refused([&] { network.backward(x, trace, wide, dx, grad); }, "dy has 5 columns");
  refused([&] { network.backward(x, trace, low, dx, grad); }, "dy has 3 rows");
  refused([&] { network.backward(trace, wide, grad); }, "dy has 5 columns");
  Matrix<double> tall = Matrix<double>::Ones(4, 4);
  refused([&] { network.backward(x, trace, dy, tall, grad); }, "dx has 4 rows");
  Net other = network_of(3, [](const X& v) { return linear(v, "map", 4); });
  refused([&] { network.backward(x, trace, dy, dx, other); }, "the parameters of grad differ");
  CHECK(dx.isOnes(0));
  CHECK(tall.isOnes(0));
  for (const auto& weight : grad.weights) CHECK(weight.value.isZero(0));
}

TEST_CASE("a network refuses a copy of itself as a gradient, and changes nothing", "[networks]") {
  const Net network = layer_network();
  const Matrix<double> x = Matrix<double>::Ones(3, 4), dy = Matrix<double>::Ones(4, 4);
  Matrix<double> dx = Matrix<double>::Ones(3, 4), y(4, 4);
  Net::Trace trace;
  State state = network.initial_state();
  network.forward(state, x, y, trace, fw::Pass::train);
  Net copy = network;
  refused([&] { network.backward(x, trace, dy, dx, copy); },
          "grad has the values of the model, expected what fw::zero_gradient makes");
  refused([&] { network.backward(trace, dy, copy); }, "grad has the values of the model");
  CHECK(dx.isOnes(0));
  for (std::size_t i = 0; i < copy.weights.size(); ++i)
    CHECK(copy.weights[i].value == network.weights[i].value);
  copy.weights.back().value(0, 0) += 1;
  CHECK_NOTHROW(network.backward(x, trace, dy, dx, copy));

  const Net zeros = fw::zero_gradient(network);  // its own zero gradient
  Net grad = zeros;
  zeros.forward(state, x, y, trace, fw::Pass::train);
  CHECK_NOTHROW(zeros.backward(x, trace, dy, dx, grad));
}

TEST_CASE("a network refuses results over arguments, and itself as its gradient", "[networks]") {
  Net network = layer_network();
  const Matrix<double> weight = network.weights[0].value;
  Matrix<double> shared = Matrix<double>::Random(4, 5);
  const Matrix<double> before = shared;
  auto x = shared.topLeftCorner(3, 2), dx = shared.block(1, 1, 3, 2);
  auto y = shared.topLeftCorner(4, 2);
  State state = network.initial_state();
  Net grad = fw::zero_gradient(network);
  Net::Trace trace;
  refused([&] { network.forward(state, x, y, trace); }, "y overlaps x");
  Matrix<double> own_y(4, 2);
  network.forward(state, x, own_y, trace, fw::Pass::train);
  refused([&] { network.backward(x, trace, own_y, dx, grad); }, "dx overlaps x");
  refused([&] { network.backward(before.topLeftCorner(3, 2), trace, y, dx, grad); },
          "dx overlaps dy");
  Matrix<double> own_dx = Matrix<double>::Ones(3, 2);
  refused([&] { network.backward(x, trace, own_y, own_dx, network); }, "grad is the model itself");
  refused([&] { network.backward(trace, own_y, network); }, "grad is the model itself");
  CHECK(shared == before);
  CHECK((own_dx.array() == 1).all());
  CHECK(network.weights[0].value == weight);
}

TEST_CASE("backward refuses gradients of other sizes", "[networks]") {
  const Net network = layer_network();
  const Matrix<double> x = Matrix<double>::Zero(3, 2), dy = Matrix<double>::Zero(4, 2);
  const Matrix<double> wide = Matrix<double>::Zero(4, 3), high = Matrix<double>::Zero(5, 2);
  Matrix<double> dx(3, 2), dx_high(4, 2);
  Net grad = fw::zero_gradient(network), empty = grad;
  empty.weights[0].value.resize(0, 0);
  State state = network.initial_state();
  Net::Trace trace;
  run(network, state, x, trace, fw::Pass::train);
  refused([&] { network.backward(x, trace, wide, dx, grad); }, "dy");
  refused([&] { network.backward(x, trace, high, dx, grad); }, "dy");
  refused([&] { network.backward(x, trace, dy, dx_high, grad); }, "dx");
  refused([&] { network.backward(x, trace, dy, dx, empty); }, "grad");
  CHECK_NOTHROW(network.backward(x, trace, dy, dx, grad));
  for (const auto& weight : grad.weights) CHECK(weight.value.isZero(0));  // dy was 0
}

// One trace may serve several networks, one after the other.
TEST_CASE("a trace of another network starts anew, and backward refuses it", "[networks]") {
  const Net network = layer_network();
  const Net other = network_of(3, [](const X& x) { return token_shift(linear(x, "map", 4)); });
  fw::Random random(1);
  const Matrix<double> x = random_matrix(3, 2, random), dy = random_matrix(4, 2, random);
  Net::Trace trace, fresh;
  State state = network.initial_state(), again = network.initial_state();
  State other_state = other.initial_state();
  run(other, other_state, x, trace, fw::Pass::train);
  Net grad = fw::zero_gradient(network), other_grad = fw::zero_gradient(other);
  refused([&] { network.backward(trace, dy, grad); }, "train pass");
  CHECK(run(network, state, x, trace, fw::Pass::train) ==
        run(network, again, x, fresh, fw::Pass::train));
  refused([&] { other.backward(trace, dy, other_grad); }, "train pass");
  const Net copy = network;  // is the same network
  CHECK_NOTHROW(copy.backward(trace, dy, grad));
}

TEST_CASE("a network refuses the state of another network, and does not change it", "[networks]") {
  const Net network = layer_network();
  const auto refused_state_of = [&](const Function& f) {
    const Net other = network_of(3, f);
    const State state = used_state(other);
    const Matrix<double> x = Matrix<double>::Ones(3, 2);
    Matrix<double> y(4, 2);
    refused_pass(
        state, [&](State& s, Net::Trace& t) { network.forward(s, x, y, t); }, "state");
  };
  using Gated = fw::GatedLinearAttention<double>;
  refused_state_of([](const X& x) { return x; });
  refused_state_of([](const X& x) { return convolution(x, "conv", 3); });
  refused_state_of([](const X& x) {  // the second member is of another kind
    return token_shift(convolution(linear(x, "map", 4), "conv", 3), "memory");
  });
  refused_state_of([](const X& x) {  // has another name
    const X y = convolution(linear(x, "map", 4), "conv", 3);
    return memory(Gated({2, 2}), {y, y, y}, {y}, "other");
  });
  refused_state_of([](const X& x) {  // is of another rule, with as many entries
    const X y = convolution(linear(x, "map", 4), "conv", 3);
    return memory(fw::DeltaRule<double>({2, 2}), {y, y, y.rows_of(0, 2)}, {y});
  });
  refused_state_of([](const X& x) {  // has another size
    const X y = convolution(linear(x, "map", 4), "conv", 3);
    return memory(Gated({1, 2}), {y.rows_of(0, 2), y, y.rows_of(0, 2)}, {y.rows_of(0, 2)});
  });
  refused_state_of([](const X& x) {  // has more heads
    const X y = convolution(linear(x, "map", 4), "conv", 3), z = tile(y, 2);
    return memory(Gated({2, 2}), {z, z, z}, {z});
  });
  refused_state_of([](const X& x) {  // the first member has another size
    const X y = convolution(linear(x, "map", 4), "conv", 2);
    return memory(Gated({2, 2}), {y, y, y}, {y});
  });
}

TEST_CASE("a network refuses a state whose counters are wrong", "[networks]") {
  const Net network = layer_network();
  const Matrix<double> x = Matrix<double>::Ones(3, 6);
  Matrix<double> y(4, 6);
  const auto refused_change = [&](const auto& change) {
    State state = used_state(network);
    change(state);
    refused_pass(
        state, [&](State& s, Net::Trace& t) { network.forward(s, x, y, t); }, "");
  };
  refused_change([](State& s) { s.positions[0] = -1; });
  refused_change([](State& s) { s.positions[0] = std::numeric_limits<Index>::max(); });
  refused_change([](State& s) { s.positions.resize(0); });
  refused_change([](State& s) { s.positions.setZero(1); });
  refused_change([](State& s) { s.positions.setZero(3); });
  refused_change([](State& s) { std::swap(s.members[0], s.members[1]); });
  refused_change([](State& s) { s.members.pop_back(); });
  for (const Index sequences : {Index(0), Index(-1), std::numeric_limits<Index>::max()})
    refused([&] { network.initial_state(sequences); }, "sequences");
}

TEST_CASE("lengths of sequences that do not fit are refused, and the state stays", "[networks]") {
  const Net network = layer_network();
  const Matrix<double> x = Matrix<double>::Ones(3, 6);
  Matrix<double> y(4, 6);
  for (const std::vector<Index>& lengths : {std::vector<Index>{6},
                                            {3, 2},
                                            {3, 4},
                                            {-1, 7},
                                            {std::numeric_limits<Index>::max(), 6},
                                            {2, 2, 2}})
    refused_pass(
        used_state(network),
        [&](State& s, Net::Trace& t) { network.forward(s, x, y, t, {.lengths = lengths}); }, "");
}

TEST_CASE("sequences that a state does not have are refused", "[networks]") {
  const Net network = layer_network();
  State state = network.initial_state(2);
  for (const Index b : {Index(-1), Index(2), std::numeric_limits<Index>::max()}) {
    refused([&] { static_cast<void>(state.stream(b)); }, "of 2");
    refused([&] { state.remove(b); }, "of 2");
  }
  refused([&] { state.add(State()); }, "another network");
  const auto convolved = [](Index rows) {
    return network_of(rows, [](const X& x) { return convolution(x, "conv", 3); }).initial_state();
  };
  State three = convolved(3);
  refused([&] { three.add(convolved(4)); }, "another network");  // the same operation, other sizes
  CHECK(three.sequences() == 1);
  three.add(convolved(3));
  CHECK(three.sequences() == 2);
  state.remove(0);
  refused([&] { state.remove(0); }, "one sequence is left");
  state.add(state);
  CHECK(state.sequences() == 2);
}

}  // namespace
