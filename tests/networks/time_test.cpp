#include "networks/operation_checks.hpp"

namespace {

using namespace fw::networks;
using namespace operation_checks;
using X = Value<double>;

TEST_CASE("convolutions: gradients and streaming", "[networks]") {
  for (const Index kernel : {1, 2, 4, 9})
    for (const bool bias : {false, true})
      check_operation([&](const auto& x) { return convolution(x, "conv", kernel, bias); });
}

TEST_CASE("a convolution is a sum over the last tokens", "[networks]") {
  Net network = network_of(1, [](const auto& x) { return convolution(x, "conv", 3); });
  network.weights[0].value = Eigen::RowVector3d(100, 10, 1);  // the last is the current token's
  State state = network.initial_state();
  Net::Trace trace;
  CHECK(run(network, state, Eigen::RowVector4d(1, 2, 3, 4), trace) ==
        Eigen::RowVector4d(1, 12, 123, 234));
  CHECK(run(network, state, Eigen::RowVector2d(5, 6), trace) == Eigen::RowVector2d(345, 456));
}

TEST_CASE("the token before: gradients and streaming", "[networks]") {
  check_operation([](const auto& x) { return token_shift(x); });
  check_operation([](const auto& x) { return token_shift(x, "a") * token_shift(exp(x), "b") - x; });
  const Matrix<double> x = Eigen::RowVector3d(1, 2, 3);
  CHECK(value_of([](const auto& v) { return token_shift(v); }, x) == Eigen::RowVector3d(0, 1, 2));
}

// The first token of a sequence, and not that of a piece.
TEST_CASE("a sequence that starts with a number: gradients and streaming", "[networks]") {
  check_operation([](const auto& x) { return start_with(1.5, x); });
  check_operation([](const auto& x) { return start_with(1, exp(x)) * token_shift(x) + x; });
  const Net network = network_of(1, [](const auto& v) { return start_with(7, v); });
  State state = network.initial_state(2);
  Net::Trace trace;
  const Eigen::RowVector4d x(1, 2, 3, 4);
  CHECK(run(network, state, x, trace) == Eigen::RowVector4d(7, 2, 7, 4));
  CHECK(run(network, state, x, trace) == x);
  CHECK(input_gradient(network, Eigen::RowVector3d(1, 2, 3)) == Eigen::RowVector3d(0, 1, 1));
}

TEST_CASE("rotary positions: gradients and streaming", "[networks]") {
  for (const bool adjacent : {false, true})
    for (const Index heads : {1, 3})
      for (const Index d : {2, 5, 18})
        for (const Index rotated : {Index(0), Index(2), d / 2 * 2})
          check_operation(heads * d, [&](const auto& x) {
            return rotary_embedding(x, heads, rotated, 100, adjacent);
          });
}

// Entries (i, i + 2) or (2i, 2i + 1) of a head turn by t and by t/10; the fifth entry stays.
TEST_CASE("rotary positions are those of their definition", "[networks]") {
  for (const bool adjacent : {false, true}) {
    Matrix<double> x(5, 4), expected(5, 4);
    fw::Random random(1);
    random.fill(x);
    for (Index t = 0; t < 4; ++t)
      for (const Index i : {0, 1}) {
        const double angle = i == 0 ? double(t) : double(t) / 10;
        const Eigen::Vector2d pair(x(adjacent ? 2 * i : i, t), x(adjacent ? 2 * i + 1 : i + 2, t));
        const double c = std::cos(angle), s = std::sin(angle);
        expected(i, t) = c * pair[0] - s * pair[1];
        expected(i + 2, t) = s * pair[0] + c * pair[1];
        expected(4, t) = x(4, t);
      }
    check_equal(
        value_of([&](const auto& v) { return rotary_embedding(v, 1, 4, 100, adjacent); }, x),
        expected, 1e-15);
  }
}

TEST_CASE("kernels and rotations that do not fit are refused", "[networks]") {
  const auto refused = [](const Function& f) {
    CHECK_THROWS_AS(network_of(6, f), std::invalid_argument);
  };
  for (const Index kernel : {Index(0), Index(-1), Index(1) << 60})
    refused([&](const auto& x) { return convolution(x, "conv", kernel); });
  refused([](const auto& x) { return rotary_embedding(x, 2, 4, 100); });
  refused([](const auto& x) { return rotary_embedding(x, 2, 1, 100); });
  refused([](const auto& x) { return rotary_embedding(x, 2, -2, 100); });
  refused([](const auto& x) { return rotary_embedding(x, 4, 2, 100); });
  refused([](const auto& x) { return rotary_embedding(x, 0, 2, 100); });
}

// A file with hostile sizes is refused when its weights are compared, before memory is taken.
TEST_CASE("building a network with a large state does not allocate it", "[networks]") {
  Builder<double> builder;
  const Net network = builder.build(convolution(builder.input(100), "conv", Index(1) << 31));
  CHECK(network.weights[0].value.size() == 0);
}

}  // namespace
