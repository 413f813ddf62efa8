#include <fastweights/networks/operations/head_products.hpp>

#include "networks/operation_checks.hpp"

namespace {

using namespace fw::networks;
using namespace operation_checks;
using X = Value<double>;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("linear maps: gradients and streaming", "[networks]") {
  for (const Index out : {1, 3, 17})
    for (const bool bias : {false, true})
      check_operation([&](const auto& x) { return linear(x, "map", out, bias); });
}

TEST_CASE("a linear map is W x + b", "[networks]") {
  Net network = network_of(2, [](const auto& x) { return linear(x, "map", 3, true); });
  weight(network, "map.weight") << 1, 2, 3, 4, 5, 6;
  weight(network, "map.bias") << 0.5, -0.5, 0.25;
  Matrix<double> x(2, 2), expected(3, 2);
  x << 1, -1, 2, 0.5;
  expected << 5.5, 0.5, 10.5, -1.5, 17.25, -1.75;
  State state = network.initial_state();
  Net::Trace trace;
  check_equal(run(network, state, x, trace), expected, 1e-15);
  CHECK(names_of_weights(network) == "map.weight\nmap.bias\n");
  CHECK(network_of(2, [](const auto& v) { return linear(v, "map", 3); }).weights.size() == 1);
}

TEST_CASE("a weight that two maps share gets the gradients of both", "[networks]") {
  check_operation([](const auto& x) {
    const auto y = linear(x, "map", x.rows());
    return linear(tanh(y), "map", x.rows()) + y * parameter(*x.builder, "scale", 1) +
           parameter(*x.builder, "scale", 1);
  });
  const Net network =
      network_of(3, [](const auto& x) { return linear(linear(x, "map", 3), "map", 3); });
  CHECK(network.weights.size() == 1);
}

// Whichever operation comes last is the first to write a gradient: it overwrites it, or finds 0.
TEST_CASE("values that several operations use, or none, or of which some rows are used",
          "[networks]") {
  check_operation([](const auto& x) { return square(x) + tanh(x) * x; });
  check_operation([](const auto& x) { return x * x + x; });
  check_operation([](const auto& x) {
    const auto y = linear(x, "map", 4);
    static_cast<void>(exp(y));  // of no use
    return y.rows_of(1, 2) + y.rows_of(2, 2);
  });
  check_operation([](const auto& x) {
    const auto y = linear(x, "map", 4);
    return concatenate<ScalarOf<decltype(x)>>({y.rows_of(0, 1), tanh(y), y});
  });
  check_operation([](const auto& x) {
    const auto y = linear(x, "map", 4), w = parameter(*x.builder, "w", 4);
    return y * (w + w) + tile(parameter(*x.builder, "u", 2), 2) * tanh(w);
  });
  check_operation([](const auto& x) {
    static_cast<void>(tanh(x));
    return linear(x, "map", 3).rows_of(1, 1);
  });
}

TEST_CASE("a weight has its published name", "[networks]") {
  Net network = network_of(3, [](const auto& x) {
    return module("part", linear(x, "map", 2), [](const auto& y) { return linear(y, "map", 4); });
  });
  CHECK(network.weight("part.map.weight").rows() == 4);
  network.weight("map.weight").value.setZero(2, 3);
  CHECK(std::as_const(network).weight("map.weight").value == Matrix<double>::Zero(2, 3));
  CHECK_THROWS_WITH(network.weight("part.map.bias"),
                    "Network: has no weight part.map.bias among its 2");
}

// Rows 1 and 2 of every head of four rows.
TEST_CASE("products of heads: gradients and streaming", "[networks]") {
  for (const Index columns : {1, 3, 17})
    for (const Index heads : {1, 3}) {
      const HeadRows rows{heads, 1, 2};
      check_operation(heads * columns, [&](const auto& x) {
        return head_products(x, "map", 4 * heads, columns, rows);
      });
      check_operation(heads * 2, [&](const auto& x) {
        return head_products(x, "map", 4 * heads, columns, rows, true);
      });
    }
  check_operation(1, [](const auto& x) { return head_products(x, "map", 1, 1, {1, 0, 1}); });
}

TEST_CASE("absorbed products of heads are those of a projection", "[networks]") {
  const Net network = network_of(6, [](const auto& x) {
    const auto q = x.rows_of(0, 4), c = x.rows_of(4, 2);  // two heads of two rows, a latent
    const auto k = linear(c, "map", 4);                   // W c
    const auto absorbed = head_products(q, "map", 4, 2, {2, 0, 2}, true);  // Wᵀ q
    return concatenate<ScalarOf<decltype(x)>>(
        {sum_heads(q * k, 2), sum_heads(absorbed * tile(c, 2), 2)});
  });
  fw::Random random(1);
  State state = network.initial_state();
  Net::Trace trace;
  const Matrix<double> y = run(network, state, random_matrix(6, 5, random), trace);
  check_equal(y.topRows(2), y.bottomRows(2), 1e-14);
}

TEST_CASE("products of heads that do not fit are refused", "[networks]") {
  const auto refused = [](const HeadRows& rows, Index count, Index columns) {
    CHECK_THROWS_AS(
        network_of(6, [&](const auto& x) { return head_products(x, "map", count, columns, rows); }),
        std::invalid_argument);
  };
  refused({2, 0, 2}, 4, 2);  // six rows, not four
  refused({2, 1, 2}, 4, 3);  // rows 1 and 2 of two
  refused({2, 0, 1}, 5, 3);  // five rows of two heads
  refused({2, -1, 1}, 4, 3);
  refused({2, 0, 0}, 4, 3);
  refused({0, 0, 1}, 4, 3);
}

// The network of an embedding, as the ids are not vectors.
TEST_CASE("an embedding: rows of its weight, and their gradients", "[networks]") {
  for (const Index d : {1, 3, 17}) {
    Builder<double> builder;
    Net network = builder.build(embedding(builder, "embed", 4, d, 2));
    fw::Random random(1);
    fw::initialise(network, random);
    const Matrix<double>& table = network.weights[0].value;
    CHECK(network.weights[0].name == "embed.weight");
    const std::vector<int> ids{3, 0, 3, 2};
    Matrix<double> y(d, 4), dy(d, 4);
    State state = network.initial_state(2);
    Net::Trace trace;
    network.forward(state, fw::Symbols(ids), y, trace, fw::Pass::train);
    CHECK(y.col(0).transpose() == table.row(3));
    CHECK(y.col(1).transpose() == table.row(0));
    CHECK(y.col(3).transpose() == table.row(2));
    CHECK(state.positions == Positions::Constant(2, 2));
    random.fill(dy);
    Net grad = fw::zero_gradient(network);
    grad.weights[0].value.setOnes();
    network.backward(trace, dy, grad);
    Matrix<double> expected = Matrix<double>::Ones(table.rows(), table.cols());
    expected.row(0) += dy.col(1).transpose();
    expected.row(3) += (dy.col(0) + dy.col(2)).transpose();  // symbol 2 is padding
    check_equal(grad.weights[0].value, expected, 1e-15);
  }
}

TEST_CASE("weights are drawn as PyTorch draws those of its modules", "[networks]") {
  const Net network = [] {
    Builder<double> builder;
    Net built = builder.build(linear(builder.input(100), "map", 400, true));
    fw::Random random(1);
    fw::initialise(built, random);
    return built;
  }();
  CHECK(network.weights[0].name == "map.weight");
  CHECK(network.weights[1].name == "map.bias");
  for (const auto& weight : network.weights) CHECK(largest_entry(weight.value) <= 0.1);
  // 40000 uniform numbers have mean 0 ± 0.0003 and mean square 0.01/3 ± 1.5e-5.
  CHECK(std::abs(network.weights[0].value.mean()) < 0.0015);
  CHECK(network.weights[0].value.squaredNorm() / 40000 == Catch::Approx(0.01 / 3).epsilon(0.025));
}

}  // namespace
