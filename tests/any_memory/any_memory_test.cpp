#include <array>
#include <fastweights/any_memory/any_memory.hpp>
#include <fastweights/testing/any_sequences.hpp>
#include <vector>

#include "any_memory/own_rule.hpp"
#include "support/catch.hpp"

namespace {

using Catch::Matchers::ContainsSubstring;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using fw::AnyMemory;
using fw::AnyState;
using fw::Index;
using Own = OwnRule<double>;

const VectorXd key = VectorXd::LinSpaced(3, 0.1, 0.3), value = VectorXd::LinSpaced(2, 1, 2);

TEST_CASE("any memory converts, and computes what its rule computes", "[any_memory]") {
  const Own rule;
  const AnyMemory<double> memory = rule;
  auto typed = fw::initial_state(rule);
  auto state = memory.initial_state();
  VectorXd expected(2), output = VectorXd::Constant(2, std::nan(""));
  const double beta = 0.5;
  for (int t = 0; t < 3; ++t) {
    fw::step(rule, typed, {key, value, beta}, {key}, {expected});
    memory.step(state, {key, value, beta}, {key}, {output});
    CHECK(output == expected);
  }
  REQUIRE(state.get<fw::StateOf<Own>>());
  CHECK(state.get<fw::StateOf<Own>>()->W == typed.W);
  CHECK(state.get<fw::StateOf<OwnRule<float>>>() == nullptr);
  REQUIRE(memory.get<Own>());
  CHECK(memory.get<Own>()->dk == 3);
  CHECK(memory.get<OwnRule<double>>() != nullptr);
}

TEST_CASE("any memory knows its members and what its rule can do", "[any_memory]") {
  const AnyMemory<double> memory = Own{5, 4};
  CHECK(memory.name() == "OwnRule");
  REQUIRE(memory.written().size() == 3);
  CHECK(memory.written()[0].name == "key");
  CHECK(memory.written()[0].rows == 5);
  CHECK(memory.written()[0].role == fw::Role::key);
  CHECK(memory.written()[1].rows == 4);
  CHECK(memory.written()[2].is_number);
  CHECK(memory.written()[2].role == fw::Role::strength);
  CHECK(memory.read_with()[0].name == "query");
  CHECK(memory.given()[0].rows == 4);
  CHECK(memory.can().pure_read);
  CHECK(memory.can().has_roles);
  CHECK(!memory.can().differentiable);
  CHECK(!memory.can().mergeable);
}

TEST_CASE("the arguments of any memory: vectors, rows, blocks, spans, numbers", "[any_memory]") {
  const AnyMemory<double> memory = Own{};
  const auto run = [&](auto&& k, auto&& v, const double& beta) {
    auto state = memory.initial_state();
    VectorXd y(2);
    memory.write(state, {k, v, beta});
    memory.read(std::as_const(state), {k}, {y});
    return y;
  };
  const VectorXd expected = run(key, value, 0.5);
  const Eigen::RowVectorXd row = key.transpose();
  const MatrixXd two = key.replicate(1, 2);
  const std::vector<double> numbers(value.data(), value.data() + 2);
  CHECK(run(row, value, 0.5) == expected);
  CHECK(run(two.col(1), numbers, 0.5) == expected);
  CHECK(run(key, std::array{value[0], value[1]}, 0.5) == expected);
  // A sequence of numbers is a row or a column.
  auto a = memory.initial_state(), b = a;
  MatrixXd K = MatrixXd::Random(3, 4), V = MatrixXd::Random(2, 4), Y(2, 4), Z(2, 4);
  const VectorXd column = VectorXd::LinSpaced(4, 0.1, 0.4);
  const MatrixXd rows = column.transpose().replicate(2, 1);
  memory.scan(a, {K, V, column}, {K}, {Y});
  memory.scan(b, {K, V, rows.row(1)}, {K}, {Z});
  CHECK(Y == Z);
  CHECK(a == b);
  const VectorXd strided = two.transpose().reshaped();  // the entries of a row of it are apart
  CHECK_THROWS_WITH(
      memory.write(a, {Eigen::Map<const MatrixXd>(strided.data(), 2, 3).row(0), V.col(0), 0.5}),
      ContainsSubstring("a token must be contiguous in memory"));
}

TEST_CASE("any memory refuses what does not fit, and changes nothing", "[any_memory]") {
  const AnyMemory<double> memory = Own{};
  auto state = memory.initial_state();
  VectorXd y(2);
  memory.step(state, {key, value, 0.5}, {key}, {y});
  const auto before = state;
  CHECK_THROWS_WITH(memory.write(state, {key, value}),
                    "OwnRule: 2 views of what is written, expected 3: key, value, beta");
  CHECK_THROWS_WITH(memory.step(state, {key, value, 0.5}, {}, {y}),
                    "OwnRule: 0 views of what is read with, expected 1: query");
  CHECK_THROWS_WITH(memory.write(state, {value, value, 0.5}),
                    "OwnRule: key has 2 rows, the memory expects 3");
  CHECK_THROWS_WITH(memory.write(state, {key, value, key}),
                    "OwnRule: beta has 3 numbers, one token expects 1");
  AnyState<double> none, other = AnyMemory<double>(Own{4, 4}).initial_state();
  CHECK_THROWS_WITH(memory.write(none, {key, value, 0.5}),
                    ContainsSubstring("OwnRule: the state is empty or one of another memory"));
  CHECK_THROWS_WITH(memory.write(other, {key, value, 0.5}),
                    "OwnRule: W has 4 rows in the state, the memory expects 2");
  CHECK_THROWS_WITH(memory.parallel_scan(state, {key, value, 0.5}, {key}, {y}, 2),
                    "OwnRule has no segments that merge");
  fw::AnyCheckpoints<double> checkpoints;
  CHECK_THROWS_WITH(memory.scan(state, {key, value, 0.5}, {key}, {y}, checkpoints),
                    "OwnRule has no gradients");
  CHECK_THROWS_WITH(memory.roll_back(state, 1), "OwnRule has no roll back");
  CHECK(state == before);
}

TEST_CASE("the state of any memory is a value", "[any_memory]") {
  const AnyMemory<double> memory = Own{};
  auto state = memory.initial_state();
  CHECK(state == memory.zero_gradient());
  CHECK(!AnyState<double>());
  VectorXd y(2);
  memory.step(state, {key, value, 0.5}, {key}, {y});
  auto copy = state;
  CHECK(copy == state);
  memory.write(copy, {key, value, 0.25});
  CHECK(!(copy == state));
  copy = state;  // into the same storage
  CHECK(copy == state);
  CHECK(!(state == AnyMemory<double>(Own{4, 2}).initial_state()));
  // In another scalar.
  const AnyMemory<float> single = OwnRule<float>{};
  const auto rounded = single.state_from(state);
  const auto& W = state.get<fw::StateOf<Own>>()->W;
  CHECK(rounded.get<fw::StateOf<OwnRule<float>>>()->W == W.cast<float>());
  CHECK(memory.state_from(rounded).get<fw::StateOf<Own>>()->W == W.cast<float>().cast<double>());
  CHECK_THROWS_WITH(single.state_from(AnyState<double>()),
                    "OwnRule: the state is empty or of other sizes");
}

TEST_CASE("any memory steps several streams and scans several heads", "[any_memory]") {
  const AnyMemory<double> memory = Own{};
  constexpr Index count = 3;
  std::vector<AnyState<double>> streams(count, memory.initial_state()), alone = streams;
  const MatrixXd K = MatrixXd::Random(3, count), V = MatrixXd::Random(2, count);
  const VectorXd beta = VectorXd::LinSpaced(count, 0.2, 0.6);
  MatrixXd Y(2, count), Z(2, count);
  memory.step(std::span(streams), {K, V, beta}, {K}, {Y}, true);
  for (Index b = 0; b < count; ++b) {
    auto& state = alone[std::size_t(b)];
    memory.step(state, {K.col(b), V.col(b), beta[b]}, {K.col(b)}, {Z.col(b)});
    CHECK(state == streams[std::size_t(b)]);
  }
  CHECK(Y == Z);
  CHECK_THROWS_WITH(memory.step(std::span(streams).first(2), {K, V, beta}, {K}, {Y}),
                    "OwnRule: step: the inputs has 3 columns, the states expects 2");

  // Two heads, stacked.
  const MatrixXd keys = MatrixXd::Random(6, 5), values = MatrixXd::Random(4, 5),
                 betas = MatrixXd::Constant(2, 5, 0.5);
  MatrixXd outputs(4, 5), head(2, 5);
  std::vector<AnyState<double>> heads(2, memory.initial_state());
  memory.scan(std::span(heads), {keys, values, betas}, {keys}, {outputs}, true);
  for (Index h = 0; h < 2; ++h) {
    auto state = memory.initial_state();
    memory.scan(state, {keys.middleRows(3 * h, 3), values.middleRows(2 * h, 2), betas.row(h)},
                {keys.middleRows(3 * h, 3)}, {head});
    CHECK(head == outputs.middleRows(2 * h, 2));
    CHECK(state == heads[std::size_t(h)]);
  }
  CHECK_THROWS_WITH(memory.scan(std::span(heads), {K, values, betas}, {keys}, {outputs}),
                    "OwnRule: key has 3 rows, the heads expects 6");
}

}  // namespace
