// A language model of published parts: gradients of its loss, several texts at once, a text in
// parts, and how it starts.

#include <fastweights/any_memory/table/deltas.hpp>
#include <fastweights/feature_maps/normalise.hpp>
#include <fastweights/layers/fast_weights.hpp>
#include <fastweights/layers/feed_forward.hpp>
#include <fastweights/layers/language_model.hpp>
#include <fastweights/training/losses.hpp>

#include "networks/operation_checks.hpp"
#include "support/queue_parallel.hpp"

namespace {

using namespace fw::networks;
using namespace operation_checks;
using Catch::Matchers::ContainsSubstring;

const std::vector<int> text{3, 1, 4, 1, 5, 0, 2, 6, 5, 3, 5, 4};
const std::vector<int> next{1, 4, 1, 5, 0, 2, 6, 5, 3, 5, 4, 1};
constexpr Index symbols = 7, steps = 12;

template <class S> Network<S> built(Index layers = 2) {
  return language_model<S>({.symbols = symbols, .width = 5, .layers = layers}, [](const auto& in) {
    const NormOptions norm{.bias = true};
    const auto x = in + fast_weights(layer_norm(in, "norm1", norm), "mixer",
                                     fw::DeltaRule<S>({.key_size = 4, .value_size = 3}),
                                     {.heads = 2}, fw::L2Normalise());
    return x + feed_forward(layer_norm(x, "norm2", norm), "ffn", {.hidden = 10});
  });
}

Net drawn(Index layers = 2) {
  Net model = built<double>(layers);
  fw::Random random(6);
  for (auto& each : model.weights) {
    each.value.resize(each.rows(), each.cols());
    random.fill(each.value, 0.8 / std::sqrt(double(each.cols())));
  }
  return model;
}

fw::Symbols part_of(const std::vector<int>& ids, Index first, Index count) {
  return fw::Symbols(ids).subspan(std::size_t(first), std::size_t(count));
}

void check_same_gradients(const Net& given, const Net& expected) {
  for (std::size_t i = 0; i < expected.weights.size(); ++i) {
    INFO(expected.weights[i].name);
    check_equal(given.weights[i].value, expected.weights[i].value, 1e-12);
  }
}

TEST_CASE("a language model: gradients of the cross-entropy", "[networks]") {
  const Net model = drawn();
  Matrix<double> logits(symbols, steps), dlogits(symbols, steps);
  Net::Trace trace;
  State state = model.initial_state();
  model.forward(state, text, logits, trace, fw::Pass::train);
  fw::cross_entropy(logits, next, dlogits);
  Net grad = fw::zero_gradient(model);
  model.backward(trace, dlogits, grad);

  ComplexNet twin = built<Complex>();
  for (std::size_t i = 0; i < twin.weights.size(); ++i)
    twin.weights[i].value = model.weights[i].value.cast<Complex>();
  ComplexNet::Trace complex_trace;
  Matrix<Complex> complex_logits(symbols, steps), unused(symbols, steps);
  const auto loss = [&] {
    State start = twin.initial_state();
    twin.forward(start, text, complex_logits, complex_trace);
    return fw::cross_entropy(complex_logits, next, unused);
  };
  for (std::size_t i = 0; i < model.weights.size(); ++i) {
    INFO(model.weights[i].name);
    check_equal(grad.weights[i].value, derivatives(twin.weights[i].value, loss), 1e-10);
  }
}

TEST_CASE("a language model: several texts at once give the results of each alone", "[networks]") {
  const Net model = drawn();
  constexpr Index texts = 3, each = steps / texts;
  fw::Random random(1);
  const Matrix<double> dlogits = random_matrix(symbols, steps, random);
  const auto read = [&](fw::Symbols ids, Index count, const Matrix<double>& dy, Net& grad) {
    State state = model.initial_state(count);
    Net::Trace trace;
    Matrix<double> logits = Matrix<double>::Constant(symbols, dy.cols(), not_a_number);
    model.forward(state, ids, logits, trace, fw::Pass::train);
    model.backward(trace, dy, grad);
    return logits;
  };
  Net grad = fw::zero_gradient(model), sum = grad;
  const Matrix<double> logits = read(text, texts, dlogits, grad);
  for (Index b = 0; b < texts; ++b)
    check_equal(read(part_of(text, b * each, each), 1, dlogits.middleCols(b * each, each), sum),
                logits.middleCols(b * each, each), 1e-13);
  check_same_gradients(grad, sum);
}

TEST_CASE("a language model: a text in parts of different processes", "[networks]") {
  const Net model = drawn(3);
  fw::Random random(2);
  const Matrix<double> dlogits = random_matrix(symbols, steps, random);
  Matrix<double> whole(symbols, steps), parts(symbols, steps);
  Net::Trace trace;
  State state = model.initial_state();
  model.forward(state, text, whole, trace, fw::Pass::train);
  Net expected = fw::zero_gradient(model), gradient = expected;
  model.backward(trace, dlogits, expected);

  const std::array<Index, 3> first{0, 3, steps};
  std::array<Net::Trace, 2> traces;
  QueueParallel parallel(2);
  const auto columns = [&](auto& of, std::size_t p) {
    return of.middleCols(first[p], first[p + 1] - first[p]);
  };
  for (const std::size_t p : {std::size_t(0), std::size_t(1)}) {
    parallel.go_to(p);
    state = model.initial_state();
    model.forward(state, part_of(text, first[p], first[p + 1] - first[p]), columns(parts, p),
                  traces[p], fw::Pass::train.over(parallel));
  }
  for (const std::size_t p : {std::size_t(1), std::size_t(0)}) {
    parallel.go_to(p);
    model.backward(traces[p], columns(dlogits, p), gradient);
  }
  CHECK(parallel.is_empty());
  check_equal(parts, whole, 1e-12);
  check_same_gradients(gradient, expected);
}

TEST_CASE("a language model: how it starts, and a gradient of another model", "[networks]") {
  Net model = built<double>();
  fw::Random random(1);
  fw::initialise(model, random);
  CHECK((weight(model, "layers.0.norm1.weight").array() == 1).all());
  CHECK(weight(model, "layers.0.mixer.write.key.weight") !=
        weight(model, "layers.1.mixer.write.key.weight"));
  CHECK(weight(model, "embed_tokens.weight").cwiseAbs().maxCoeff() > 0);
  CHECK(weight(model, "layers.1.ffn.linear2.bias").cwiseAbs().maxCoeff() > 0);
  CHECK_THROWS_WITH(built<double>(-1), "language_model: layers is -1, expected at least 1");

  Matrix<double> logits(symbols, steps);
  Net::Trace trace;
  State state = model.initial_state();
  model.forward(state, text, logits, trace, fw::Pass::train);
  Net shallow = drawn(1);
  const Net before = shallow;
  CHECK_THROWS_WITH(model.backward(trace, logits, shallow),
                    ContainsSubstring("the parameters of grad differ"));
  check_same_gradients(shallow, before);
}

// In the namespace fw too, also beside a using-directive for both.
TEST_CASE("a language model reads one token in a step", "[networks]") {
  using namespace fw;
  using namespace fw::networks;
  CHECK(&fw::language_model<double, Value<double> (*)(const Value<double>&)> ==
        &fw::networks::language_model<double, Value<double> (*)(const Value<double>&)>);
  Network<double> model = language_model<double>(
      {.symbols = symbols, .width = 5},
      [](const auto& x) { return x + convolution(rms_norm(x, "norm", {}), "conv", 3); });
  fw::Random random(1);
  initialise(model, random);
  networks::State state = model.initial_state(), again = state, other = state;
  Net::Trace trace;
  Matrix<double> y(symbols, 1), z(symbols, 1);
  for (const int id : text) {
    model.forward(state, Symbols(&id, 1), y, trace);
    CHECK(model.step(again, id) == y);
    model.step(other, id, z, trace);
    CHECK(z == y);
  }
  CHECK_THROWS_WITH(model.step(again, symbols), ContainsSubstring("token 0 is 7, expected 0 to 6"));
  CHECK(numbers_of(again) == numbers_of(state));
  networks::State two = model.initial_state(2);
  CHECK_THROWS_WITH(model.step(two, 0), ContainsSubstring("a state of 2 sequences"));
  CHECK_THROWS_WITH(Net().step(two, 0), ContainsSubstring("is empty"));
}

}  // namespace
