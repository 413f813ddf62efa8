#include <fastweights/layers/attention/relative_attention.hpp>
#include <fastweights/networks/operations/relative_attention.hpp>

#include "networks/operation_checks.hpp"

namespace {

using namespace fw::networks;
using namespace operation_checks;
using Catch::Matchers::ContainsSubstring;

template <class X> X attend(const X& x, Index d, Index heads, Index window, bool bias = false) {
  const X o = relative_attention(linear(x, "query", d, bias), linear(x, "key", d),
                                 linear(x, "value", d, bias), heads, window);
  return linear(o, "output", d, bias);
}

TEST_CASE("relative attention: gradients and streaming", "[networks]") {
  for (const Index window : {1, 2, 4, 20})
    for (const Index d : {1, 3, 17}) {
      INFO("window " << window << ", d " << d);
      check_operation(3, [&](const auto& x) { return attend(x, d, 1, window); });
    }
  check_operation([](const auto& x) { return attend(x, 6, 3, 3); });
  check_operation([](const auto& x) { return relative_attention(x, x, x, 1, 3); });
}

// The weights of a layer by the names of the network's.
template <class F> void for_each_weight(fw::RelativeAttention<double>& layer, const F& f) {
  f("query.weight", layer.query.weight);
  f("query.bias", layer.query.bias);
  f("key.weight", layer.key.weight);
  f("value.weight", layer.value.weight);
  f("value.bias", layer.value.bias);
  f("position.weight", layer.position.weight);
  f("output.weight", layer.output.weight);
  f("output.bias", layer.output.bias);
  f("content_bias", layer.content_bias);
  f("position_bias", layer.position_bias);
}

TEST_CASE("relative attention is that of the layer", "[networks]") {
  for (const Index steps : {1, 5, 40})
    for (const Index window : {1, 3, 17}) {
      constexpr Index d = 6, heads = 2;
      INFO(steps << " tokens, window " << window);
      Net network = network_of(d, [&](const auto& x) { return attend(x, d, heads, window, true); });
      fw::RelativeAttention<double> layer(
          {.d_model = d, .heads = heads, .window = window, .bias = true});
      for_each_weight(layer,
                      [&](const std::string& name, auto& to) { to = weight(network, name); });
      auto expected = fw::zero_gradient(layer);
      fw::Random random(6);
      const Matrix<double> x = random_matrix(d, steps, random);
      const Matrix<double> dy = random_matrix(d, steps, random);
      Matrix<double> y = dy, dx = x, given_dx = x;
      auto layer_state = layer.initial_state();
      fw::RelativeAttention<double>::Trace layer_trace;
      layer.forward(layer_state, x, y, layer_trace, fw::Pass::train);
      layer.backward(x, layer_trace, dy, dx, expected);
      State state = network.initial_state();
      Net::Trace trace;
      check_equal(run(network, state, x, trace, fw::Pass::train), y, 1e-12);
      Net grad = fw::zero_gradient(network);
      network.backward(x, trace, dy, given_dx, grad);
      check_equal(given_dx, dx, 1e-12);
      for_each_weight(expected, [&](const std::string& name, const auto& gradient) {
        INFO(name);
        check_equal(weight(grad, name), gradient, 1e-12);
      });
      layer.forward(layer_state, x, y, layer_trace);  // goes on behind the window
      check_equal(run(network, state, x, trace), y, 1e-12);
    }
}

// A trace keeps W_r R between passes.
TEST_CASE("relative attention sees that its position weight changes", "[networks]") {
  Net network = network_of(3, [](const auto& x) { return attend(x, 3, 1, 4); });
  fw::Random random(6);
  const Matrix<double> x = random_matrix(3, 5, random);
  State state = network.initial_state(), fresh = state, other = state;
  Net::Trace trace, new_trace;
  const Matrix<double> before = run(network, state, x, trace);
  weight(network, "position.weight") *= 2;
  const Matrix<double> after = run(network, fresh, x, trace);
  CHECK(after != before);
  CHECK(after == run(network, other, x, new_trace));
}

TEST_CASE("relative attention refuses sizes that do not fit", "[networks]") {
  const auto refused = [](Index rows, Index heads, Index window, const std::string& what) {
    CHECK_THROWS_WITH(network_of(6,
                                 [&](const auto& x) {
                                   return relative_attention(x, x.rows_of(0, rows), x, heads,
                                                             window);
                                 }),
                      ContainsSubstring(what));
  };
  refused(6, 4, 2, "6 rows do not divide into 4 equal parts");
  refused(6, 0, 2, "equal parts");
  refused(6, 2, 0, "window: the window is 0 tokens");
  refused(6, 2, Index(1) << 40, "tokens, expected 1 to 16777216");
  refused(5, 2, 2, "window: an input has 5 rows");
}

}  // namespace
