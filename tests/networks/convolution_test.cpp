#include "networks/operation_checks.hpp"

namespace {

using namespace fw::networks;
using namespace operation_checks;
using X = Value<double>;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("grouped convolutions: gradients and streaming", "[networks]") {
  for (const Index kernel : {1, 3, 4})
    for (const Index dilation : {1, 3})
      for (const bool bias : {false, true}) {
        INFO("kernel " << kernel << ", dilation " << dilation << ", bias " << bias);
        const auto check = [&](Index rows, Index outputs, Index groups) {
          const ConvolutionOptions options{kernel, outputs, groups, dilation, bias};
          check_operation(rows, [&](const auto& x) { return convolution(x, "conv", options); });
        };
        check(1, 0, 1);
        check(3, 2, 1);
        check(17, 3, 1);
        check(17, 17, 17);
        check(6, 0, 3);
        check(4, 6, 2);
        check(3, 6, 3);
      }
}

// Each output is the definition's sum over taps and inputs of its group.
TEST_CASE("a grouped convolution is the sum of its definition", "[networks]") {
  constexpr Index inputs = 6, outputs = 4, groups = 2, kernel = 3, dilation = 2, steps = 9;
  const Net network = network_of(inputs, [](const auto& x) {
    return convolution(x, "conv", {kernel, outputs, groups, dilation, true});
  });
  REQUIRE(network.weights[0].axes == std::vector<Index>{outputs, inputs / groups, kernel});
  fw::Random random(2);
  const Matrix<double> x = random_matrix(inputs, steps, random);
  Matrix<double> expected(outputs, steps);
  for (Index o = 0; o < outputs; ++o)
    for (Index t = 0; t < steps; ++t) {
      double sum = network.weights[1].value(o, 0);
      for (Index i = 0; i < inputs / groups; ++i)
        for (Index j = 0; j < kernel; ++j) {
          const Index from = t - dilation * (kernel - 1 - j), group = o / (outputs / groups);
          if (from >= 0)
            sum += network.weights[0].value(o * (inputs / groups) + i, j) *
                   x(group * (inputs / groups) + i, from);
        }
      expected(o, t) = sum;
    }
  State state = network.initial_state();
  Net::Trace trace;
  check_equal(run(network, state, x, trace), expected, 1e-14);
}

TEST_CASE("a depthwise convolution of options is that without", "[networks]") {
  const Net plain = network_of(5, [](const auto& x) { return convolution(x, "conv", 4, true); });
  Net grouped = network_of(5, [](const auto& x) {
    return convolution(x, "conv", {.kernel = 4, .groups = 5, .bias = true});
  });
  fw::Random random(2);
  const Matrix<double> x = random_matrix(5, 9, random);
  for (std::size_t i = 0; i < 2; ++i) grouped.weights[i].value = plain.weights[i].value;
  State a = plain.initial_state(3), b = grouped.initial_state(3);
  Net::Trace trace_a, trace_b;
  check_equal(run(grouped, b, x, trace_b), run(plain, a, x, trace_a), 1e-15);
}

TEST_CASE("convolutions whose options do not fit are refused", "[networks]") {
  const auto refused = [](const ConvolutionOptions& o, const std::string& what) {
    CHECK_THROWS_WITH(network_of(6, [&](const auto& x) { return convolution(x, "conv", o); }),
                      ContainsSubstring("conv: " + what));
  };
  refused({.kernel = 0}, "kernel");
  refused({.kernel = 2, .outputs = -1}, "outputs");
  refused({.kernel = 2, .groups = 0}, "groups");
  refused({.kernel = 2, .dilation = 0}, "dilation");
  refused({.kernel = 2, .groups = 4}, "6 rows do not divide into 4 groups");
  refused({.kernel = 2, .outputs = 4, .groups = 3}, "4 rows do not divide into 3 groups");
  refused({.kernel = 2, .dilation = Index(1) << 62}, "the kernel reaches back too far");
  refused({.kernel = Index(1) << 62}, "the kernel reaches back too far");
}

Net dropout_network(Index rows, double rate) {
  return network_of(rows, [&](const auto& x) { return dropout(x, rate) + 0.5 * x; });
}

Matrix<double> dropped(const Net& network, const Matrix<double>& x, Index sequences, Index piece,
                       std::uint64_t seed = 7) {
  const Index steps = x.cols() / sequences;
  State state = network.initial_state(sequences);
  fw::seed_dropout(state, seed);
  Matrix<double> y(x.rows(), x.cols());
  Net::Trace trace;
  for (Index t = 0; t < steps; t += piece) {
    const Index count = std::min(piece, steps - t);
    const Matrix<double> part =
        run(network, state, tokens(x, sequences, t, count), trace, fw::Pass::train);
    for (Index b = 0; b < sequences; ++b)
      y.middleCols(b * steps + t, count) = part.middleCols(b * count, count);
  }
  return y;
}

TEST_CASE("dropout draws the same for any split of the sequences", "[networks]") {
  fw::Random random(2);
  for (const Index rows : {1, 3, 17}) {
    const Net network = dropout_network(rows, 0.4);
    const Matrix<double> x = random_matrix(rows, 3 * 7, random);
    const Matrix<double> whole = dropped(network, x, 3, 7);
    for (const Index piece : {1, 2, 5}) CHECK(dropped(network, x, 3, piece) == whole);
    CHECK(dropped(network, x, 3, 7, 8) != whole);
    const Matrix<double> same = Matrix<double>::Ones(rows, 3 * 7);
    const Matrix<double> draws = dropped(network, same, 3, 7);
    CHECK(draws.leftCols(7) != draws.rightCols(7));  // sequences have draws of their own
  }
}

TEST_CASE("dropout keeps the mean, and is the identity in an infer pass", "[networks]") {
  const Net network = dropout_network(100, 0.3);
  const Matrix<double> x = Matrix<double>::Ones(100, 400);
  const Matrix<double> y = dropped(network, x, 2, 200).array() - 0.5;
  const Index zeros = (y.array().abs() < 1e-12).count();
  CHECK(zeros + ((y.array() - 1 / 0.7).abs() < 1e-12).count() == y.size());
  CHECK(double(zeros) / double(y.size()) == Catch::Approx(0.3).margin(0.01));  // 4.4 deviations
  State state = network.initial_state(2);
  Net::Trace trace;
  CHECK(run(network, state, x, trace) == 1.5 * x);
}

TEST_CASE("dropout: gradients are those of the same draws", "[networks]") {
  const Net network = dropout_network(3, 0.4);
  fw::Random random(2);
  const Matrix<double> x = random_matrix(3, 2 * 5, random);
  State state = network.initial_state(2);
  fw::seed_dropout(state, 3);
  Net::Trace trace;
  const Matrix<double> y = run(network, state, x, trace, fw::Pass::train);
  const Matrix<double> dy = random_matrix(3, x.cols(), random);
  Matrix<double> dx = Matrix<double>::Constant(3, x.cols(), not_a_number);
  Net grad = fw::zero_gradient(network);
  network.backward(x, trace, dy, dx, grad);
  // y is linear in every entry of x by itself.
  check_equal(dx, dy.cwiseProduct(y).cwiseQuotient(x), 1e-14);
}

TEST_CASE("dropout refuses a rate, and a train pass without a seed", "[networks]") {
  for (const double rate : {-0.1, 1.0, not_a_number})
    CHECK_THROWS_WITH(dropout_network(3, rate), ContainsSubstring("dropout: rate is "));
  const Net network = dropout_network(3, 0.5);
  State state = network.initial_state();
  Net::Trace trace;
  const Matrix<double> x = Matrix<double>::Ones(3, 2);
  CHECK_THROWS_WITH(run(network, state, x, trace, fw::Pass::train),
                    ContainsSubstring("dropout: a train pass without a seed"));
  CHECK(state.positions[0] == 0);
  const Net none = network_of(3, [](const auto& v) { return dropout(v, 0) + v; });
  check_streaming(none);
}

}  // namespace
