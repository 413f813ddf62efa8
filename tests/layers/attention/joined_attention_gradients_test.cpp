#include "layers/attention/joined_layers.hpp"

namespace {

using namespace joined_layers;

TEST_CASE("JoinedAttention: gradients, streaming, refusals beside relative attention",
          "[layers][joined]") {
  check<Relative, Even>(Join::sum);
  check<Relative, Even>(Join::alpha);
}

// If all tokens are 0, all queries have the same density and the same KL. The mean then depends
// neither on the number of queries nor on the number of writes between them.
TEST_CASE("JoinedAttention: the KL is a mean over all queries", "[layers][joined]") {
  auto layer = random_layer<Relative<double>, Even<double>>();
  layer.long_term.kl.weight = 0.3;
  const auto kl_gradient = [&layer](Index steps) {
    const Matrix<double> x = Matrix<double>::Zero(d, steps);
    Matrix<double> y(d, steps), dx(d, steps);
    auto state = layer.initial_state();
    typename decltype(layer)::Trace trace;
    auto grad = layer;
    fw::set_zero_parameters(grad);
    layer.forward(state, x, y, trace, fw::Pass::train);
    layer.backward(x, trace, x, dx, grad);
    return grad.long_term.density.components.variance_bias[0];
  };
  CHECK(std::abs(kl_gradient(1)) > 1e-3);
  for (const Index steps : {2, 7, 23})
    CHECK(kl_gradient(steps) == Catch::Approx(kl_gradient(1)).epsilon(1e-12));
}

TEST_CASE("JoinedAttention: a gate for chunks of another length is refused", "[layers][joined]") {
  using Memory = Continuous<double, fw::EvenSampling>;
  using Long = fw::LongTermLayer<Memory, fw::AffineGate<double>>;
  using Joined = fw::JoinedAttention<Relative<double>, Long>;
  const Long with_gate({.heads = 2}, long_term<Even<double>>().memory,
                       fw::AffineGate<double>(chunk + 1));
  CHECK_THROWS_WITH(Joined(short_term<Relative<double>>(), with_gate, window, chunk),
                    "AffineGate: x has 2 columns, the gate expects 3");
  CHECK_NOTHROW(Joined(short_term<Relative<double>>(), with_gate, window, chunk + 1));
}

TEST_CASE("JoinedAttention: a short-term memory of another window is refused", "[layers][joined]") {
  using Joined = fw::JoinedAttention<Relative<double>, Even<double>>;
  CHECK_THROWS_WITH(
      Joined(short_term<Relative<double>>(), long_term<Even<double>>(), window + 1, chunk),
      "JoinedAttention: the short-term memory has " + std::to_string(window) +
          " tokens, the window expects " + std::to_string(window + 1));
}

}  // namespace
