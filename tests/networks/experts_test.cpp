#include "networks/operation_checks.hpp"

namespace {

using namespace fw::networks;
using namespace operation_checks;
using X = Value<double>;

TEST_CASE("softmax and weights that add up to one: gradients and streaming", "[networks]") {
  check_operation([](const auto& x) { return softmax(x); });
  check_operation(12, [](const auto& x) { return softmax(x, 4) + softmax(x, 12); });
  check_operation([](const auto& x) { return normalise_routing(exp(x), 0.1); });
  const Matrix<double> sums = value_of([](const auto& x) { return sum_heads(softmax(x, 2), 2); },
                                       Eigen::Vector4d(1e300, 0, -1e300, 1));
  check_equal(sums, Eigen::Vector2d(1, 1), 1e-15);
}

TEST_CASE("chosen experts: gradients and streaming", "[networks]") {
  for (const Index experts : {1, 3, 17})
    for (const Index chosen : {Index(1), (experts + 1) / 2, experts})
      check_operation(experts, [&](const auto& x) {
        return normalise_routing(top_k_experts(sigmoid(x), {.experts = chosen}));
      });
  check_operation(12, [](const auto& x) {
    return top_k_experts(x, {.experts = 3, .groups = 4, .best_groups = 2});
  });
}

TEST_CASE("the largest scores are kept, of equal ones the first", "[networks]") {
  const auto kept = [](const Matrix<double>& scores, const Choice& choice) {
    return value_of([&](const auto& x) { return top_k_experts(x, choice); }, scores);
  };
  CHECK(kept(Eigen::Vector4d(1, 4, -2, 3), {.experts = 2}) == Eigen::Vector4d(0, 4, 0, 3));
  CHECK(kept(Eigen::Vector4d(2, 5, 5, 5), {.experts = 2}) == Eigen::Vector4d(0, 5, 5, 0));
  CHECK(kept(Eigen::Vector4d(-3, -1, -2, -4), {.experts = 1}) == Eigen::Vector4d(0, -1, 0, 0));
  // The second half has the largest sum of two, though the first has the largest score.
  CHECK(kept(Eigen::Vector4d(6, 0, 4, 3), {.experts = 2, .groups = 2, .best_groups = 1}) ==
        Eigen::Vector4d(0, 0, 4, 3));
  CHECK(kept(Eigen::Vector4d(6, 0, 4, 3), {.experts = 2, .groups = 4, .best_groups = 2}) ==
        Eigen::Vector4d(6, 0, 4, 0));
}

TEST_CASE("a bias chooses, but is not in the result", "[networks]") {
  const Function f = [](const auto& x) {
    return top_k_experts(x, {.experts = 1}, {parameter(*x.builder, "bias", 3)});
  };
  Net network = network_of(3, f);
  network.weights[0].value = Eigen::Vector3d(0, 0, 10);
  State state = network.initial_state();
  Net::Trace trace;
  CHECK(run(network, state, Eigen::Vector3d(1, 2, 0.5), trace) == Eigen::Vector3d(0, 0, 0.5));
  check_gradients(network, f);
}

template <class X> X routed(const X& x, Index n, Index chosen) {
  return top_k_experts(softmax(linear(x, "gate", n)), {.experts = chosen});
}

TEST_CASE("experts: gradients and streaming", "[networks]") {
  for (const Index n : {1, 3})
    for (const Index hidden : {1, 3, 17}) {
      check_operation([&](const auto& x) { return experts(x, routed(x, n, 1), hidden); });
      check_operation([&](const auto& x) {
        return stacked_experts(x, routed(x, n, (n + 1) / 2), hidden, "gate_up", "down");
      });
    }
  check_operation([](const auto& x) { return experts(x, routed(x, 5, 2), 2, {.gate = ""}); });
  check_operation([](const auto& x) { return experts<fw::Gelu>(x, routed(x, 2, 2), 3); });
}

TEST_CASE("stacked experts are experts with other names", "[networks]") {
  Net apart = network_of(3, [](const auto& x) { return experts(x, routed(x, 4, 2), 5); });
  Net stacked = network_of(
      3, [](const auto& x) { return stacked_experts(x, routed(x, 4, 2), 5, "gate_up", "down"); });
  apart.weights[0].value = stacked.weights[0].value;
  for (Index e = 0; e < 4; ++e) {
    const std::size_t first = std::size_t(1 + 3 * e);
    CHECK(apart.weights[first].name == "experts." + std::to_string(e) + ".gate_proj.weight");
    apart.weights[first].value = stacked.weights[1].value.middleRows(10 * e, 5);
    apart.weights[first + 1].value = stacked.weights[1].value.middleRows(10 * e + 5, 5);
    apart.weights[first + 2].value = stacked.weights[2].value.middleRows(3 * e, 3);
  }
  fw::Random random(1);
  const Matrix<double> x = random_matrix(3, 6, random);
  State a = apart.initial_state(), b = stacked.initial_state();
  Net::Trace trace_a, trace_b;
  check_equal(run(apart, a, x, trace_a), run(stacked, b, x, trace_b), 1e-15);
}

TEST_CASE("choices that are not possible are refused", "[networks]") {
  const auto refused = [](const Function& f) {
    CHECK_THROWS_AS(network_of(6, f), std::invalid_argument);
  };
  refused([](const auto& x) { return top_k_experts(x, {.experts = 0}); });
  refused([](const auto& x) { return top_k_experts(x, {.experts = 7}); });
  refused([](const auto& x) { return top_k_experts(x, {.groups = 4}); });
  refused([](const auto& x) { return top_k_experts(x, {.groups = 0}); });
  refused([](const auto& x) { return top_k_experts(x, {.groups = 2, .best_groups = 0}); });
  refused([](const auto& x) {
    return top_k_experts(x, {.experts = 1}, {parameter(*x.builder, "bias", 5)});
  });
  refused([](const auto& x) { return top_k_experts(x, {.experts = 1}, {x}); });
  refused([](const auto& x) { return softmax(x, 4); });
  refused([](const auto& x) { return softmax(x, 0); });
  refused([](const auto& x) { return experts(x, routed(x, 2, 1), 0); });
  refused([](const auto& x) { return experts(x, routed(x, 2, 1), Index(1) << 60); });
  refused([](const auto& x) { return stacked_experts(x, routed(x, 2, 1), -1, "a", "b"); });
  refused(
      [](const auto& x) { return stacked_experts(x, routed(x, 2, 1), Index(1) << 62, "a", "b"); });
}

}  // namespace
