#include <array>
#include <fastweights/algorithms/scan.hpp>
#include <fastweights/algorithms/step.hpp>
#include <fastweights/math/random.hpp>
#include <fastweights/memories/attention/continuous_memory.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/networks/operations.hpp>
#include <span>
#include <vector>

#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace {

using Eigen::MatrixXf;
using Eigen::VectorXf;
using fw::Index;
using In = std::span<const float>;
using Out = std::span<float>;

MatrixXf random_matrix(Index rows, Index cols, unsigned seed) {
  fw::Random random(seed);
  MatrixXf x(rows, cols);
  random.fill(x);
  return x;
}

// A vector of numbers with the entries of x, column after column.
std::vector<float> numbers(const MatrixXf& x) { return {x.data(), x.data() + x.size()}; }

// Steps with spans give the bits of steps with Eigen's vectors.
template <class Memory> void check_steps(const Memory& memory) {
  const MatrixXf k = random_matrix(4, 5, 1), v = random_matrix(3, 5, 2);
  auto state = fw::initial_state(memory), expected_state = state;
  std::vector<float> y(3);
  VectorXf expected(3);
  for (Index t = 0; t < 5; ++t) {
    const In key(k.col(t).data(), 4), value(v.col(t).data(), 3);
    fw::step(memory, state, {key, value, 0.5f}, {key}, {Out(y)});
    fw::step(memory, expected_state, {k.col(t), v.col(t), 0.5f}, {k.col(t)}, {expected});
    CHECK(y == numbers(expected));
  }
  CHECK(state.W == expected_state.W);
}

TEST_CASE("a step takes spans, with sizes fixed or not", "[spans]") {
  check_steps(fw::DeltaRule<float>({.key_size = 4, .value_size = 3}));
  check_steps(fw::DeltaRule<float, 4, 3>());
}

TEST_CASE("a step takes what converts to a span", "[spans]") {
  const fw::DeltaRule<float, 2> memory;
  auto state = fw::initial_state(memory);
  const std::array key{1.0f, 0.0f};
  const std::vector<float> value{3, 4};
  float pointed[2] = {};
  std::array<float, 2> y{};
  fw::step(memory, state, {key, value, 1.0f}, {key}, {y});
  CHECK(y == std::array{3.0f, 4.0f});
  fw::read(memory, state, {std::span<const float, 2>(key)}, {std::span(&pointed[0], 2)});
  CHECK(pointed[1] == 4.0f);
}

TEST_CASE("a view of a span has the address of its numbers", "[spans]") {
  std::array<float, 6> x{};
  CHECK(fw::TokenView<const float, 6>(x).data() == x.data());
  CHECK(fw::TokenView<float, fw::Dynamic>(Out(x)).data() == x.data());
  CHECK(fw::SequenceView<float, 2>(fw::as_columns(x, 2)).data() == x.data());
  CHECK(fw::ScalarSequence<const float>(In(x)).data() == x.data());
}

TEST_CASE("a sequence takes spans as columns", "[spans]") {
  const fw::DeltaRule<float> memory({.key_size = 4, .value_size = 3});
  const MatrixXf k = random_matrix(4, 9, 3), v = random_matrix(3, 9, 4);
  const VectorXf beta = VectorXf::Constant(9, 0.25f);
  MatrixXf expected(3, 9);
  auto state = fw::initial_state(memory), expected_state = state;
  fw::scan(memory, expected_state, {k, v, beta}, {k}, {expected});

  const std::vector<float> keys = numbers(k), values = numbers(v), betas(9, 0.25f);
  std::vector<float> outputs(27);
  fw::scan(memory, state, {fw::as_columns(In(keys), 4), fw::as_columns(values, 3), betas},
           {fw::as_columns(keys, 4)}, {fw::as_columns(outputs, 3)});
  CHECK(outputs == numbers(expected));
  CHECK(state.W == expected_state.W);
}

TEST_CASE("a network takes a span as one token", "[spans]") {
  fw::networks::Builder<float> net;
  auto network = net.build(linear(net.input(4), "map", 3, true));
  fw::Random random(5);
  fw::initialise(network, random);
  const MatrixXf x = random_matrix(4, 1, 6);
  MatrixXf expected(3, 1);
  auto state = network.initial_state();
  fw::networks::Network<float>::Trace trace;
  network.forward(state, x, expected, trace);
  const std::vector<float> in = numbers(x);
  std::vector<float> out(3);
  network.forward(state, In(in), Out(out), trace);
  CHECK(out == numbers(expected));
}

TEST_CASE("a span of another size is refused by name, and nothing changes", "[spans]") {
  const fw::DeltaRule<float> memory({.key_size = 4, .value_size = 3});
  const fw::DeltaRule<float, 4, 3> fixed;
  auto state = fw::initial_state(memory);
  auto fixed_state = fw::initial_state(fixed);
  const std::vector<float> four(4, 1.0f), three(3, 1.0f), betas(2, 1.0f);
  std::vector<float> y(3);
  const auto step = [&](const auto& m, auto& s, In key, In value, Out out) {
    return error_of([&] { fw::step(m, s, {key, value, 1.0f}, {four}, {out}); });
  };
  CHECK(step(memory, state, three, three, y) == "DeltaRule: key has 3 rows, the memory expects 4");
  CHECK(step(fixed, fixed_state, four, four, y) ==
        "DeltaRule: value has 4 rows, the memory expects 3");
  CHECK(step(fixed, fixed_state, four, three, Out(y).first(2)) ==
        "DeltaRule: output has 2 rows, the memory expects 3");
  CHECK(error_of([&] {
          fw::scan(memory, state, {four, three, betas}, {four}, {y});
        }) == "DeltaRule: beta has 2 columns, the sequence expects 1");
  CHECK(state.W.isZero(0));
  CHECK(fixed_state.W.isZero(0));
}

TEST_CASE("as_columns refuses columns that are not whole", "[spans]") {
  const std::vector<float> ten(10);
  const auto error = [&](Index rows) { return error_of([&] { fw::as_columns(ten, rows); }); };
  CHECK(fw::as_columns(ten, 5).cols() == 2);
  CHECK(fw::as_columns(In(), 5).cols() == 0);
  CHECK(error(4) == "fastweights: as_columns: 10 numbers are no columns of 4 rows");
  CHECK(error(0) == "fastweights: as_columns: 10 numbers are no columns of 0 rows");
}

// A member of one row takes a span as numbers, also where its number of columns varies.
TEST_CASE("a chunk of numbers takes a span", "[spans]") {
  std::array<float, 3> draws{0.1f, 0.2f, 0.3f};
  const fw::TokenView<const float, 1, fw::Dynamic> view(draws);
  CHECK(view.rows() == 1);
  CHECK(view.cols() == 3);
  CHECK(view.given().width == 3);
  CHECK(view(0, 2) == 0.3f);
}

}  // namespace
