#include <fastweights/any_memory/table/deltas.hpp>
#include <fastweights/io/weights.hpp>
#include <fastweights/memories/adaptors/deferred.hpp>

#include "networks/operation_checks.hpp"
#include "support/queue_parallel.hpp"

/// \file
/// States of whole networks that roll back. The law of every operation is check_roll_back.

namespace {

using namespace fw::networks;
using namespace operation_checks;
using X = Value<double>;
using Catch::Matchers::ContainsSubstring;
using fw::io::SafeTensors;
using fw::io::SafeTensorsWriter;
using Delta = fw::DeltaRule<double>;
template <int R> using DeferredDelta = fw::Deferred<Delta, 4, double, R>;

// The sum of all symbols so far.
struct SymbolSum {
  Matrix<double> sum;
  static constexpr auto names = fw::names("sum");
};
struct AddSymbols final : Operation<double> {
  std::unique_ptr<StatePart> initial_state(Index sequences) const override {
    return std::make_unique<StateOfPart<SymbolSum>>(SymbolSum{Matrix<double>::Zero(1, sequences)});
  }
  void forward(const Forward<double>& run) const override {
    auto& sum = run.own_state<SymbolSum>().sum;
    for (Index b = 0; b < run.sequences(); ++b)
      for (Index t = run.streams.first(b), end = t + run.streams.steps(b); t < end; ++t) {
        sum(0, b) += run.ids.begin()[t];
        run.out().col(t) = run.in().col(t).array() + 0.1 * sum(0, b);
      }
  }
  void backward(const Backward<double>&) const override {}
};

// Every kind of state: windows, cells, memories, caches, and one that reads symbols.
template <class Rule> X block(const X& x) {
  const X y = silu(convolution(linear(x, "in_proj", 6), "conv", 3));
  const X b = sigmoid(linear(token_shift(x), "b_proj", 3));
  const X a = memory(Rule(Delta({2, 2})), {l2(y, 3), y, b}, {y});
  const X r = relative_attention(y, y, y, 2, 5);
  const X w = module("window", y, [](const X& v) { return attention(v, v, v, 3, 4, 1.0); });
  const X grown = attention(y, y, y, 3, {.capacity = 2});
  const X all = concatenate<double>({a, grown, lstm(r, "lstm", 3), w});
  return linear(all, "out_proj", x.rows());
}
Net network() {
  Builder<double> builder;
  const X in = embedding(builder, "embed", 7, 3);
  const X x = builder.add(AddSymbols(), 3, {in}, {}, "symbols");
  const X y = module("layers.0", rotary_embedding(x, 1, 2, 10), block<Delta>);
  Net net = builder.build(linear(module("layers.1", x + y, block<DeferredDelta<5>>), "head", 7));
  fw::Random random(2);
  fw::initialise(net, random);
  return net;
}

std::vector<int> symbols(Index count, std::uint64_t seed) {
  fw::Random random(seed);
  std::vector<int> ids(static_cast<std::size_t>(count));
  for (int& id : ids) id = static_cast<int>(random.below(7));
  return ids;
}

// Streams and a trace, which reads some symbols.
struct Reader {
  const Net& net;
  State state;
  Net::Trace trace = {};

  Matrix<double> operator()(const std::vector<int>& ids) {
    Matrix<double> y(7, Index(ids.size()));
    net.forward(state, ids, y, trace);
    return y;
  }
};

SafeTensors saved(const State& state) {
  SafeTensorsWriter writer;
  fw::io::add_state(writer, state, "stream");
  return SafeTensors::parse(writer.bytes());
}

TEST_CASE("drafts that are taken back leave no trace in a network", "[networks]") {
  const Net net = network();
  for (const Index limit : {1, 3, 5, 9}) {
    INFO("roll_back " << limit);
    Reader drafting{net, net.initial_state({.roll_back = limit})};
    Reader plain{net, net.initial_state()};
    for (Index i = 0; i < 30; ++i) {
      const std::vector<int> drafts = symbols(limit, 100 + std::uint64_t(i));
      const std::vector<int> kept(drafts.begin(), drafts.begin() + i % (limit + 1));
      const Matrix<double> y = drafting(drafts);
      drafting.state.roll_back(limit - Index(kept.size()));
      if (!kept.empty()) check_equal(y.leftCols(Index(kept.size())), plain(kept), 1e-12);
      const std::vector<int> next = symbols(1 + i % 3 * 8, 200 + std::uint64_t(i));
      check_equal(drafting(next), plain(next), 1e-12);
      CHECK(drafting.state.positions == plain.state.positions);
    }
  }
}

TEST_CASE("a prompt that is read in pieces can be taken back", "[networks]") {
  const Net net = network();
  const std::vector<int> prompt = symbols(40, 1), next = symbols(2, 2);
  for (const Index piece : {1, 3, 16, 100}) {
    Reader a{net, net.initial_state({.sequences = 2, .roll_back = 4})};
    Matrix<double> last(7, 2);
    net.prefill(a.state, fw::Symbols(prompt), last, a.trace, piece);
    a.state.roll_back(4, 1);
    for (const Index b : {0, 1}) {
      Reader alone{net, net.initial_state()};
      const auto first = prompt.begin() + 20 * b;
      const Matrix<double> all = alone({first, first + (b == 0 ? 20 : 16)});
      if (b == 0) check_equal(last.col(0), all.rightCols(1), 1e-12);
      Reader stream{net, a.state.stream(b)};
      check_equal(stream(next), alone(next), 1e-12);
    }
  }
}

TEST_CASE("a state that rolls back is saved, loaded and copied", "[networks]") {
  const Net net = network();
  for (const Index before : {0, 1, 2, 9, 30}) {
    const StateOptions options{.sequences = 2, .roll_back = 4};
    Reader a{net, net.initial_state(options)}, b{net, net.initial_state(options)};
    if (before > 0) a(symbols(2 * before, 1));
    const Index most = std::min<Index>(before, 2);
    a.state.roll_back(most);
    fw::io::load_state(b.state, saved(a.state), "stream");
    Reader copy{net, a.state};
    const std::vector<int> next = symbols(6, 3);
    const Matrix<double> y = a(next);
    CHECK(b(next) == y);
    CHECK(copy(next) == y);
    for (Reader* each : {&a, &b, &copy}) each->state.roll_back(most + 1);
    const std::vector<int> other = symbols(2, 4);
    const Matrix<double> z = a(other);
    CHECK(b(other) == z);
    CHECK(copy(other) == z);
  }
}

TEST_CASE("a state without roll back keeps nothing for it", "[networks]") {
  const Net net = network();
  const State plain = net.initial_state(2);
  CHECK(plain.kept.empty());
  for (const auto& each : plain.members) CHECK(each.kept == nullptr);
  for (const auto& each : saved(plain).names()) CHECK(each.find("roll_back") == std::string::npos);
  const SafeTensors file = saved(net.initial_state({.sequences = 2, .roll_back = 1}));
  for (const char* name : {"stream.roll_back.1.left", "stream.layers.0.conv.roll_back.kept.inputs",
                           "stream.layers.0.memory.roll_back.checkpoint_1.heads.5.W"})
    CHECK(file.contains(name));
  State loaded = net.initial_state({.sequences = 2, .roll_back = 1});
  CHECK_THROWS_WITH(fw::io::load_state(loaded, saved(plain), "stream"),
                    ContainsSubstring("roll_back"));
}

TEST_CASE("memories and caches that take tokens back keep nothing else", "[networks]") {
  const auto keeps = [](const Function& f) {
    const State state = network_of(3, f).initial_state({.roll_back = 5});
    REQUIRE(state.members.size() == 1);
    return state.members[0].kept != nullptr;
  };
  CHECK(!keeps([](const X& x) { return attention(x, x, x, 1, {.capacity = 2}); }));
  CHECK(!keeps([](const X& x) {
    return attention(x, x, x, 1, {.capacity = 50, .when_full = fw::WhenFull::refuse});
  }));
  CHECK(keeps([](const X& x) { return attention(x, x, x, 1, 4); }));
  const auto delta = [](auto rule) {
    return [=](const X& x) { return memory(rule, {l2(x, 1), x, sigmoid(x.rows_of(0, 1))}, {x}); };
  };
  CHECK(!keeps(delta(DeferredDelta<5>(Delta({3, 3})))));
  CHECK(keeps(delta(DeferredDelta<4>(Delta({3, 3})))));
  CHECK(keeps(delta(Delta({3, 3}))));
}

TEST_CASE("memories and caches that take tokens back: streaming", "[networks]") {
  fw::Random random(4);
  const auto check = [&](const Function& f) { check_roll_back(network_of(3, f), random); };
  check([](const X& x) { return attention(x, x, x, 1, {.capacity = 2}); });
  check([](const X& x) { return attention(linear(x, "q", 12), x, x, 1, {.capacity = 1}); });
  check([](const X& x) {
    return attention(x, x, x, 1, {.capacity = 200, .when_full = fw::WhenFull::refuse});
  });
  check([](const X& x) { return attention(x, x, x, 1, 4); });
  check([](const X& x) {
    const DeferredDelta<3> rule(Delta({3, 3}));
    return memory(rule, {l2(x, 1), x, sigmoid(x.rows_of(0, 1))}, {x});
  });
}

TEST_CASE("a full cache has room again for what is taken back", "[networks]") {
  const Net net = network_of(3, [](const X& x) {
    return attention(x, x, x, 1, {.capacity = 4, .when_full = fw::WhenFull::refuse});
  });
  fw::Random random(1);
  State state = net.initial_state({.roll_back = 2});
  Net::Trace trace;
  run(net, state, random_matrix(3, 4, random), trace);
  CHECK_THROWS_AS(run(net, state, random_matrix(3, 1, random), trace), std::length_error);
  state.roll_back(2);
  CHECK_THROWS_AS(run(net, state, random_matrix(3, 3, random), trace), std::length_error);
  run(net, state, random_matrix(3, 2, random), trace);
  CHECK(state.positions[0] == 4);
}

void refused(const std::function<void()>& call, const std::string& message) {
  CHECK_THROWS_AS(call(), std::invalid_argument);
  CHECK_THROWS_WITH(call(), ContainsSubstring(message));
}

TEST_CASE("a roll back that cannot be is refused, and nothing changes", "[networks]") {
  const Net net = network();
  Reader reader{net, net.initial_state({.sequences = 2, .roll_back = 3})};
  State& state = reader.state;
  refused([&] { state.roll_back(1); }, "1 tokens of sequence 0, expected 0 to 0");
  reader(symbols(4, 1));
  refused([&] { state.roll_back(3); }, "3 tokens of sequence 0, expected 0 to 2");
  state.roll_back(1, 1);
  const auto before = saved(state).names();
  refused([&] { state.roll_back(2); }, "2 tokens of sequence 1, expected 0 to 1");
  refused([&] { state.roll_back(-1); }, "-1 tokens");
  refused([&] { state.roll_back(1, 2); }, "sequence 2 of 2");
  CHECK(state.positions == Positions{{2, 1}});
  reader(symbols(20, 2));
  CHECK(state.most_rolled_back(1) == 3);
  State plain = net.initial_state(2);
  refused([&] { plain.roll_back(1); }, "expected one of initial_state with the option roll_back");
  plain.roll_back(0);
  refused([&] { state.add(plain); }, "rolls back 0 tokens, expected 3");
  refused([&] { net.initial_state({.roll_back = -1}); }, "roll_back of -1 tokens, expected 0 to");
  refused([&] { net.initial_state({.roll_back = Index(1) << 40}); }, "tokens, expected 0 to");
}

TEST_CASE("passes of training do not take a state that rolls back", "[networks]") {
  const Net net = network_of(3, [](const X& x) { return token_shift(x); });
  State state = net.initial_state({.roll_back = 3});
  Net::Trace trace;
  const Matrix<double> x = Matrix<double>::Ones(3, 2);
  refused([&] { run(net, state, x, trace, fw::Pass::train); }, "takes one without in a train pass");
  QueueParallel parallel(1);
  parallel.go_to(0);
  refused([&] { run(net, state, x, trace, fw::Pass::infer.over(parallel)); },
          "over a SequenceParallel");
  CHECK(state.positions[0] == 0);
}

TEST_CASE("kept tokens that no pass leaves are refused", "[networks]") {
  const Net net = network();
  const auto changed = [&](const auto& change) {
    Reader reader{net, net.initial_state({.sequences = 2, .roll_back = 3})};
    reader(symbols(26, 1));
    reader.state.roll_back(1);
    change(reader.state);
    CHECK_THROWS_AS(reader(symbols(2, 2)), std::invalid_argument);
  };
  const Index largest = std::numeric_limits<Index>::max();
  for (Index KeptTokens::*number : {&KeptTokens::kept, &KeptTokens::at, &KeptTokens::newer,
                                    &KeptTokens::older, &KeptTokens::left, &KeptTokens::taken})
    for (const Index value : {Index(-1), Index(40), largest, -largest})
      changed([&](State& s) { s.kept[1].*number = value; });
  changed([](State& s) { s.kept.pop_back(); });
  changed([](State& s) { s.kept[0].ids.resize(3); });
  changed([](State& s) { s.positions[1] = 1; });
  changed([](State& s) { s.members[1].kept.reset(); });
  changed([](State& s) { s.roll_back_limit = 20; });
}

// A record of another form that has no assign.
struct Counted {
  Index count = 0;
  static constexpr auto names = fw::names("count");
  Counted stream(Index, Index) const { return *this; }
  void add(const Counted&) {}
  void remove(Index, Index) {}
};
struct Count final : Operation<double> {
  std::unique_ptr<StatePart> initial_state(Index) const override {
    return std::make_unique<StateOfPart<Counted>>(Counted{});
  }
  void forward(const Forward<double>& run) const override { run.out() = run.in(); }
  void backward(const Backward<double>&) const override {}
};

TEST_CASE("an operation whose state cannot roll back is named", "[networks]") {
  const Net net =
      network_of(3, [](const X& x) { return x.builder->add(Count(), 3, {x}, {}, "counter"); });
  static_cast<void>(net.initial_state(2));
  refused([&] { net.initial_state({.roll_back = 1}); }, "counter: the state cannot roll back");
}

}  // namespace
