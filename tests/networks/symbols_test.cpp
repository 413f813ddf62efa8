// Lists that count as symbols: any list of ints.

#include <array>
#include <fastweights/layers/parameters.hpp>
#include <fastweights/math/random.hpp>
#include <fastweights/networks/operations.hpp>

#include "support/catch.hpp"

namespace {

using namespace fw::networks;
using Net = Network<float>;

TEST_CASE("a network takes lists of ints as symbols", "[networks]") {
  Builder<float> builder;
  Net network = builder.build(linear(embedding(builder, "embed", 5, 3), "map", 2));
  fw::Random random(1);
  fw::initialise(network, random);
  Net::Trace trace;
  const auto outputs = [&](const auto& ids) {
    State state = network.initial_state();
    Eigen::MatrixXf y(2, 2);
    network.forward(state, ids, y, trace);
    return y;
  };
  std::array<int, 2> ids{4, 1};
  const Eigen::MatrixXf expected = outputs(fw::Symbols(ids));
  CHECK(outputs(std::vector<int>{4, 1}) == expected);
  CHECK(outputs(ids) == expected);
  CHECK(outputs(std::span<int>(ids)) == expected);
  State state = network.initial_state();
  Eigen::VectorXf y(2);
  network.forward(state, std::vector<int>{4}, y, trace);
  CHECK(y == expected.col(0));
  CHECK_THROWS_AS(outputs(std::vector<int>{4, 5}), std::invalid_argument);

  Builder<float> vectors;
  Net layer = vectors.build(linear(vectors.input(2), "map", 2));
  fw::initialise(layer, random);
  Eigen::MatrixXf out(2, 1);
  Net::Trace own;
  State none = layer.initial_state();
  const Eigen::MatrixXf ones = Eigen::MatrixXf::Ones(2, 1);
  layer.forward(none, ones, out, own);
  layer.forward(none, std::vector<float>{1, 1}, out, own);
  CHECK_THROWS_AS(layer.forward(none, std::vector<int>{1}, out, own), std::invalid_argument);
}

}  // namespace
