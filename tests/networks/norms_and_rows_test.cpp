#include "networks/operation_checks.hpp"

namespace {

using namespace fw::networks;
using namespace operation_checks;
using X = Value<double>;

TEST_CASE("norms: gradients and streaming", "[networks]") {
  check_operation([](const auto& x) { return rms(x, 1, 1e-5); });
  check_operation([](const auto& x) { return l2(x, 1); });
  check_operation([](const auto& x) { return unit(x, 1); });
  for (const Index rows : {3, 17})
    check_operation(rows, [](const auto& x) { return standardise(x, 1, 1e-5); });
  check_operation(1, [](const auto& x) { return standardise(x, 1, 0.5); });
}

TEST_CASE("norms of groups, one of which is an entry", "[networks]") {
  for (const Index rows : {3, 51}) {
    check_operation(rows, [](const auto& x) { return rms(x, 3, 1e-3) + l2(x, 3, 1e-2); });
    check_operation(rows, [](const auto& x) { return unit(x, 3) + standardise(x, 3, 0.1); });
  }
}

TEST_CASE("norms with weights", "[networks]") {
  check_operation([](const auto& x) { return rms_norm(x, "norm", {.plus_one = true}); });
  for (const bool shared : {false, true})
    for (const Index rows : {6, 51}) {
      const NormOptions o{.epsilon = 0.1, .groups = 3, .shared = shared, .bias = true};
      check_operation(rows, [&](const auto& x) { return rms_norm(x, "norm", o); });
      check_operation(rows, [&](const auto& x) { return layer_norm(x, "norm", o); });
      CHECK(network_of(rows, [&](const auto& x) { return layer_norm(x, "norm", o); })
                .weights[0]
                .value.size() == (shared ? rows / 3 : rows));
    }
}

TEST_CASE("norms are those of their definitions", "[networks]") {
  const Eigen::Vector4d x(1, -2, 3, 4);
  check_equal(value_of([](const auto& v) { return rms(v, 1, 0.5); }, x), x / std::sqrt(7.5 + 0.5),
              1e-15);
  check_equal(value_of([](const auto& v) { return l2(v, 1, 0.5); }, x), x / std::sqrt(30.5), 1e-15);
  check_equal(value_of([](const auto& v) { return unit(v, 1); }, x), x / std::sqrt(30.0), 1e-15);
  check_equal(value_of([](const auto& v) { return standardise(v, 1, 0.75); }, x),
              (x.array() - 1.5).matrix() / std::sqrt(7.5 - 2.25 + 0.75), 1e-15);
  check_equal(value_of([](const auto& v) { return unit(v, 2); }, x),
              Eigen::Vector4d(1 / std::sqrt(5), -2 / std::sqrt(5), 0.6, 0.8), 1e-15);
}

TEST_CASE("norms with weights are w ⊙ norm + b", "[networks]") {
  const auto outputs = [](Net& network, const Matrix<double>& x) {
    State state = network.initial_state();
    Net::Trace trace;
    return run(network, state, x, trace);
  };
  Net rms_of = network_of(2, [](const auto& x) { return rms_norm(x, "norm", {.epsilon = 0.5}); });
  weight(rms_of, "norm.weight") << 1, -2;
  Matrix<double> x(2, 2), expected(2, 2);
  x << 3, 0, 4, 0;  // mean square 25/2, plus ε = 13
  expected << 3 / std::sqrt(13.0), 0, -8 / std::sqrt(13.0), 0;
  check_equal(outputs(rms_of, x), expected, 1e-15);

  // The norm of one row is its bias.
  Net one = network_of(
      1, [](const auto& v) { return layer_norm(v, "norm", {.epsilon = 1e-5, .bias = true}); });
  weight(one, "norm.bias") << 0.75;
  CHECK((outputs(one, Eigen::RowVector3d(1, -5, 1e6)).array() == 0.75).all());
  CHECK(names_of_weights(one) == "norm.weight\nnorm.bias\n");
}

TEST_CASE("a layer norm subtracts the mean before it squares", "[networks]") {
  Builder<float> builder;
  const Network<float> network = builder.build(standardise(builder.input(4), 1, 1e-5));
  State state = network.initial_state();
  Network<float>::Trace trace;
  Eigen::VectorXf y(4);
  const Eigen::VectorXf x = Eigen::Vector4f(10001, 10002, 10003, 10004);
  network.forward(state, x, y, trace);
  CHECK((y - Eigen::Vector4f(-1.3416354f, -0.4472118f, 0.4472118f, 1.3416354f)).norm() < 1e-5f);
}

TEST_CASE("norms of zeros are zeros with finite gradients", "[networks]") {
  for (const Function& f : {Function([](const auto& x) { return rms(x, 1, 1e-6); }),
                            Function([](const auto& x) { return l2(x, 1); }),
                            Function([](const auto& x) { return unit(x, 1); }),
                            Function([](const auto& x) { return standardise(x, 1, 1e-6); })}) {
    const Matrix<double> zeros = Matrix<double>::Zero(3, 1);
    CHECK(value_of(f, zeros) == zeros);
    CHECK(input_gradient(network_of(3, f), zeros).allFinite());
  }
}

TEST_CASE("rows in another order: gradients and streaming", "[networks]") {
  check_operation([](const auto& x) { return gather(x, {0, x.rows() - 1, 0}); });
  check_operation([](const auto& x) { return concatenate<ScalarOf<decltype(x)>>({x, exp(x), x}); });
  check_operation([](const auto& x) { return tile(x, 3); });
  check_operation([](const auto& x) { return sum_heads(x, 1); });
  check_operation([](const auto& x) { return repeat_heads(x, x.rows(), 2); });
  check_operation(12,
                  [](const auto& x) { return sum_heads(x, 4) + sum_heads(x.rows_of(4, 4), 4); });
  check_operation(12, [](const auto& x) {
    const auto [a, b, c] = split_heads<3>(x, 2, {1, 3, 2});
    return concatenate<ScalarOf<decltype(x)>>({b * a, c});
  });
  check_operation(12, [](const auto& x) {
    const auto [a, b] = split<2>(x, {4, 8});
    return join_heads<ScalarOf<decltype(x)>>({a, b, exp(a)}, 2);
  });
}

// For two heads of six rows.
TEST_CASE("heads are where they should be", "[networks]") {
  const Eigen::VectorXd x = Eigen::VectorXd::LinSpaced(6, 0, 5);
  const auto rows = [&](const Function& f, std::vector<double> expected) {
    CHECK(value_of(f, x) ==
          Eigen::Map<const Eigen::VectorXd>(expected.data(), Index(expected.size())));
  };
  rows([](const auto& v) { return split_heads<2>(v, 2, {1, 2})[0]; }, {0, 3});
  rows([](const auto& v) { return split_heads<2>(v, 2, {1, 2})[1]; }, {1, 2, 4, 5});
  rows(
      [](const auto& v) {
        return join_heads<ScalarOf<decltype(v)>>({v.rows_of(0, 2), v.rows_of(2, 4)}, 2);
      },
      {0, 2, 3, 1, 4, 5});
  rows([](const auto& v) { return repeat_heads(v, 2, 2); }, {0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5});
  rows([](const auto& v) { return tile(v.rows_of(4, 2), 2); }, {4, 5, 4, 5});
  rows([](const auto& v) { return sum_heads(v, 2); }, {3, 12});
  rows([](const auto& v) { return gather(v, {5, 0}); }, {5, 0});
}

TEST_CASE("groups, heads and rows that do not divide are refused", "[networks]") {
  const auto refused = [](const Function& f) {
    CHECK_THROWS_AS(network_of(6, f), std::invalid_argument);
  };
  refused([](const auto& x) { return rms(x, 4, 1e-6); });
  refused([](const auto& x) { return l2(x, 0); });
  refused([](const auto& x) { return unit(x, -1); });
  refused([](const auto& x) { return rms_norm(x, "norm", {.groups = 4, .shared = true}); });
  refused([](const auto& x) { return rms_norm(x, "norm", {.groups = 0, .shared = true}); });
  refused([](const auto& x) { return layer_norm(x, "norm", {.groups = 0, .shared = true}); });
  refused([](const auto& x) { return split_heads<2>(x, 2, {1, 1})[0]; });
  refused([](const auto& x) { return sum_heads(x, 4); });
  refused([](const auto& x) { return sum_heads(x, 0); });
  refused([](const auto& x) { return repeat_heads(x, 4, 2); });
  refused([](const auto& x) { return repeat_heads(x, 0, 2); });
  refused([](const auto& x) { return tile(x, 0); });
  refused([](const auto& x) { return gather(x, {0, 6}); });
  refused([](const auto& x) { return gather(x, {-1}); });
  refused([](const auto& x) { return gather(x, {}); });
  refused([](const auto& x) { return join_heads<ScalarOf<decltype(x)>>({x, x.rows_of(0, 3)}, 2); });
}

}  // namespace
