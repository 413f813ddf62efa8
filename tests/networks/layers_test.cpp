// The published layers as functions of values: gradients, streaming, options, and a language model.

#include <fastweights/layers/comba.hpp>
#include <fastweights/layers/delta_net.hpp>
#include <fastweights/layers/feed_forward.hpp>
#include <fastweights/layers/gated_delta_net.hpp>
#include <fastweights/layers/gated_delta_net_2.hpp>
#include <fastweights/layers/gated_delta_product.hpp>
#include <fastweights/layers/gated_linear_attention.hpp>
#include <fastweights/layers/gated_slot_attention.hpp>
#include <fastweights/layers/hgrn2.hpp>
#include <fastweights/layers/kimi_delta_attention.hpp>
#include <fastweights/layers/language_model.hpp>
#include <fastweights/layers/mamba2.hpp>
#include <fastweights/layers/mesa_net.hpp>
#include <fastweights/layers/preconditioned_gated_delta_net.hpp>
#include <fastweights/layers/retnet.hpp>
#include <fastweights/layers/rwkv6.hpp>
#include <fastweights/layers/rwkv7.hpp>
#include <optional>
#include <set>
#include <string>

#include "networks/operation_checks.hpp"

namespace {

using namespace fw::networks;
using namespace operation_checks;
using Catch::Matchers::ContainsSubstring;

constexpr fw::networks::Heads grouped{.key_heads = 1, .heads = 2, .d_k = 2, .d_v = 3};
constexpr QueryHeads queries{.heads = 2, .kv_heads = 1, .d_k = 2, .d_v = 3};
constexpr ShortConvolution convolution{.kernel = 2, .bias = true}, none{.kernel = 0};

TEST_CASE("layers of the gated delta rules: gradients and streaming", "[networks]") {
  check_operation(3, [](const auto& x) {
    return gated_delta_net(x, "mixer", {.heads = grouped, .convolution = convolution});
  });
  check_operation(3, [](const auto& x) {
    return gated_delta_net(x, "",
                           {.heads = grouped,
                            .convolution = none,
                            .negative_eigenvalues = true,
                            .gate = Activation::none,
                            .norm = {.affine = false}});
  });
  check_operation(3, [](const auto& x) {
    return kimi_delta_attention(x, "mixer",
                                {.key_heads = 1,
                                 .heads = 2,
                                 .d_k = 2,
                                 .d_v = 3,
                                 .kernel = 2,
                                 .forget = {"f_proj.0", "f_proj.1", 2},
                                 .gate = {"g_proj.0", "g_proj.1", 2, true}});
  });
  check_operation(3, [](const auto& x) {
    return comba(x, "mixer", {.heads = grouped, .convolution = convolution});
  });
  check_operation(3, [](const auto& x) {
    return gated_delta_net_2(x, "mixer", {.heads = grouped, .convolution = convolution});
  });
  check_operation(3, [](const auto& x) {
    return preconditioned_gated_delta_net(x, "mixer",
                                          {.heads = grouped, .convolution = convolution});
  });
}

TEST_CASE("layers of delta rules and products of them: gradients and streaming", "[networks]") {
  for (const Activation activation : {Activation::silu, Activation::elu_plus_one, Activation::none})
    check_operation(3, [&](const auto& x) {
      return delta_net(
          x, "mixer",
          {.heads = 2,
           .d_k = 2,
           .d_v = 3,
           .convolution = convolution,
           .key_activation = activation,
           .sum_to_one = activation == Activation::elu_plus_one,
           .learns_strength = activation != Activation::elu_plus_one,
           .gate = activation == Activation::silu ? Activation::none : Activation::silu});
    });
  for (const Index writes : {1, 3})
    check_operation(3, [&](const auto& x) {
      return gated_delta_product(
          x, "mixer",
          {.heads = grouped, .writes = writes, .convolution = convolution, .forgets = writes > 1});
    });
}

TEST_CASE("layers of gated sums and slots: gradients and streaming", "[networks]") {
  check_operation(3, [](const auto& x) {
    return gated_linear_attention(x, "mixer", {.heads = queries, .decay_rank = 2});
  });
  check_operation(3, [](const auto& x) {
    return gated_linear_attention(x, "mixer",
                                  {.heads = queries,
                                   .convolution = convolution,
                                   .feature_map = Activation::sigmoid,
                                   .decay_rank = 1,
                                   .least_log_decay = -0.05,
                                   .gate = Activation::sigmoid});
  });
  check_operation(3, [](const auto& x) { return retention(x, "mixer", {.heads = queries}); });
  check_operation(3, [](const auto& x) {
    return hgrn2(x, "mixer", {.heads = 2, .d_k = 2, .d_v = 3, .convolution = convolution});
  });
  check_operation(6, [](const auto& x) {
    return gated_slot_attention(x, "mixer",
                                {.heads = queries, .slots = 2, .learned_map = true, .scale = 0.5});
  });
}

TEST_CASE("layers of Mamba-2, RWKV and MesaNet: gradients and streaming", "[networks]") {
  check_operation(3, [](const auto& x) {
    return mamba2(x, "mixer", {.heads = 2, .d_v = 2, .groups = 1, .d_k = 3, .kernel = 2});
  });
  check_operation(3, [](const auto& x) {
    return rwkv6(x, "mixer", {.heads = 2, .d_k = 2, .d_v = 3, .mix_rank = 2, .decay_rank = 2});
  });
  check_operation(3, [](const auto& x) {
    std::optional<std::decay_t<decltype(x)>> v_first;
    const auto y = rwkv7(x, "first", {.heads = 2, .d_k = 2, .d_v = 3}, v_first);
    return rwkv7(y, "second", {.heads = 2, .d_k = 2, .d_v = 3}, v_first);
  });
  check_operation(3, [](const auto& x) {
    return mesa_net(x, "mixer", {.heads = 2, .d = 2, .convolution = convolution});
  });
}

TEST_CASE("feed-forward layers: gradients and streaming", "[networks]") {
  check_operation(3, [](const auto& x) {
    return feed_forward(x, "mlp", {.hidden = 5, .activation = Activation::tanh});
  });
  for (const bool bias : {false, true}) {
    check_operation([&](const auto& x) {
      return feed_forward(x, "mlp", {.hidden = 2 * x.rows() + 1, .bias = bias});
    });
    check_operation([&](const auto& x) { return swiglu(x, "mlp", 2 * x.rows() + 1, bias); });
  }
}

TEST_CASE("a feed-forward layer in float agrees with double", "[networks]") {
  const Net exact = network_of(
      65, [](const Value<double>& x) { return feed_forward(x, "mlp", {.hidden = 300}); });
  Builder<float> builder;
  Network<float> network = builder.build(feed_forward(builder.input(65), "mlp", {.hidden = 300}));
  for (std::size_t i = 0; i < exact.weights.size(); ++i)
    network.weights[i].value = exact.weights[i].value.cast<float>();
  fw::Random random(3);
  const Matrix<double> x = random_matrix(65, 9, random), dy = random_matrix(65, 9, random);
  State state = exact.initial_state(), float_state = network.initial_state();
  Net::Trace trace;
  Network<float>::Trace float_trace;
  const Trained expected = train(exact, state, x, dy, trace);
  const Matrix<float> float_x = x.cast<float>(), float_dy = dy.cast<float>();
  Matrix<float> y(65, 9), dx(65, 9);
  Network<float> grad = fw::zero_gradient(network);
  network.forward(float_state, float_x, y, float_trace, fw::Pass::train);
  network.backward(float_x, float_trace, float_dy, dx, grad);
  CHECK(largest_entry(y.cast<double>() - expected.y) <= 2e-6 * largest_entry(expected.y));
  CHECK(largest_entry(dx.cast<double>() - expected.dx) <= 2e-6 * largest_entry(expected.dx));
}

TEST_CASE("a layer's weights have its name; without one, those of the module", "[networks]") {
  Builder<double> net;
  const auto x = net.input(3);
  const auto y = module("block", x, [](const auto& in) { return swiglu(in, "", 2); });
  const Net network = net.build(swiglu(y, "mlp", 2));
  std::set<std::string> names;
  for (const auto& weight : network.weights) names.insert(weight.name);
  CHECK(names.contains("block.gate_proj.weight"));
  CHECK(names.contains("mlp.down_proj.weight"));
  CHECK(names.size() == 6);
}

TEST_CASE("layers refuse options that no paper has", "[networks]") {
  Builder<double> net;
  const auto x = net.input(3);
  CHECK_THROWS_WITH(gated_delta_product(x, "mixer", {.heads = grouped, .writes = 5}),
                    ContainsSubstring("5 writes, expected 1 to 4"));
  CHECK_THROWS_WITH(gated_linear_attention(x, "gla", {.heads = queries, .normaliser = 0}),
                    ContainsSubstring("expected above 0"));
  CHECK_THROWS_WITH(
      language_model<double>({.symbols = 3, .width = 0}, [](const auto& in) { return in; }),
      ContainsSubstring("width"));
}

TEST_CASE("a language model of a block: names, and token by token", "[networks]") {
  Net model = language_model<double>({.symbols = 5, .width = 4, .layers = 2}, [](const auto& in) {
    const auto x = in + gated_delta_net(rms_norm(in, "norm1", {}), "mixer", {.heads = grouped});
    return x + swiglu(rms_norm(x, "norm2", {}), "mlp", 6);
  });
  fw::Random random(3);
  fw::initialise(model, random);
  std::set<std::string> names;
  for (const auto& weight : model.weights) names.insert(weight.name);
  for (const char* name : {"embed_tokens.weight", "layers.0.norm1.weight", "norm.weight",
                           "layers.1.mixer.q_proj.weight", "lm_head.weight"})
    CHECK(names.contains(name));
  CHECK(model.outputs() == 5);

  const std::vector<int> ids{1, 4, 0, 2, 2, 3};
  Net::Trace trace;
  State state = model.initial_state(), stepped = model.initial_state();
  Matrix<double> whole = Matrix<double>::Constant(5, 6, not_a_number), one(5, 1);
  model.forward(state, ids, whole, trace);
  for (Index t = 0; t < 6; ++t) {
    model.forward(stepped, std::vector<int>{ids[std::size_t(t)]}, one, trace);
    check_equal(one, whole.col(t), 1e-13);
  }
  CHECK(language_model<double>({.symbols = 5, .width = 4, .tied = true}, [](const auto& in) {
          return in;
        }).weights.size() == 2);
}

}  // namespace
