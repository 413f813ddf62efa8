#include <fastweights/layers/gated_short_convolution.hpp>
#include <fastweights/layers/mamba.hpp>
#include <fastweights/layers/rg_lru.hpp>
#include <fastweights/layers/rwkv4.hpp>

#include "networks/operation_checks.hpp"

namespace {

using namespace fw::networks;
using namespace operation_checks;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("layers of Mamba: gradients and streaming", "[networks]") {
  for (const MambaNorms norms : {MambaNorms::none, MambaNorms::plain, MambaNorms::weighted})
    for (const Index parts : {1, 2})
      check_operation(3, [&](const auto& x) {
        return mamba(
            x, "mixer",
            {.channels = 4, .d_k = 3, .rank = 2, .kernel = 2, .norms = norms, .parts = parts});
      });
}

TEST_CASE("short convolutions, RG-LRU and RWKV-4: gradients and streaming", "[networks]") {
  check_operation(3, [](const auto& x) {
    return gated_short_convolution(x, "conv", {.kernel = 3, .bias = true});
  });
  check_operation(4, [](const auto& x) { return rg_lru(x, "rg_lru", 2); });
  check_operation(3, [](const auto& x) {
    return rg_lru_block(x, "block", {.channels = 4, .heads = 2, .kernel = 2});
  });
  check_operation(3, [](const auto& x) { return rwkv4_time_mix(x, "attention", 4); });
  check_operation(3, [](const auto& x) { return rwkv4_channel_mix(x, "feed_forward", 5); });
}

TEST_CASE("the parts of Mamba's channels change no number and no name", "[networks]") {
  const auto with_parts = [](Index parts) {
    return network_of(3, [parts](const auto& x) {
      return mamba(x, "mixer", {.channels = 64, .d_k = 3, .bias = true, .parts = parts});
    });
  };
  const Net whole = with_parts(1);
  Matrix<double> x(3, 8);
  fw::Random random(3);
  random.fill(x);
  State state = whole.initial_state();
  Net::Trace trace;
  const Matrix<double> dy = Matrix<double>::Ones(3, 8);
  const Trained expected = train(whole, state, x, dy, trace);
  for (const Index parts : {0, 2, 64}) {  // 0 is 2
    Net cut = with_parts(parts);
    CHECK(names_of_weights(cut) == names_of_weights(whole));
    State own = cut.initial_state();
    Net::Trace own_trace;
    const Trained given = train(cut, own, x, dy, own_trace);
    check_equal(given.y, expected.y, 1e-14);
    check_equal(given.dx, expected.dx, 1e-13);
    for (std::size_t i = 0; i < whole.weights.size(); ++i)
      check_equal(given.grad.weights[i].value, expected.grad.weights[i].value, 1e-13);
  }
  CHECK(parts_of_channels(64) == 2);
  CHECK(parts_of_channels(5120) == 16);
  for (const Index channels : {1, 33, 67}) CHECK(parts_of_channels(channels) == 1);
  CHECK_THROWS_WITH(with_parts(3), ContainsSubstring("64 rows do not divide into 3 parts"));
}

// y_t of one channel and one key, by hand, with a kernel of one token.
TEST_CASE("Mamba's mixer is its equations", "[networks]") {
  Net net = network_of(1, [](const auto& x) {
    return mamba(x, "m", {.channels = 1, .d_k = 1, .rank = 1, .kernel = 1, .conv_bias = false});
  });
  const auto w = [&](const char* name) -> Matrix<double>& { return weight(net, name); };
  const auto silu = [](double v) { return v / (1 + std::exp(-v)); };
  const Eigen::RowVector3d x(0.5, -1, 2);
  State state = net.initial_state();
  Net::Trace trace;
  const Matrix<double> y = run(net, state, x, trace);
  double memory = 0;
  for (Index t = 0; t < 3; ++t) {
    const double v = silu(w("m.conv1d.weight")(0) * w("m.in_proj.weight")(0) * x[t]);
    const double z = w("m.in_proj.weight")(1) * x[t];
    const double k = w("m.x_proj.weight")(1) * v, q = w("m.x_proj.weight")(2) * v;
    const double step = std::log1p(
        std::exp(w("m.dt_proj.weight")(0) * w("m.x_proj.weight")(0) * v + w("m.dt_proj.bias")(0)));
    memory = std::exp(-step * std::exp(w("m.A_log")(0))) * memory + step * v * k;
    const double expected = w("m.out_proj.weight")(0) * (memory * q + w("m.D")(0) * v) * silu(z);
    CHECK(std::abs(y(t) - expected) <= 1e-14);
  }
}

}  // namespace
