#include "support/catch.hpp"
#include "support/reductions.hpp"

/// \file
/// Fast nets for inputs and states that are not those of the laws.

namespace {

using Eigen::VectorXd;
using fw::make_memory;
using laws::leaf;

TEST_CASE("fast nets stay finite for large preactivations", "[delta_delta_net][delta_mlp]") {
  const auto net = make_memory<double>("DeltaDeltaNet", {2});
  auto state = net.initial_state();
  const VectorXd key = VectorXd::Constant(2, -1e4), value = VectorXd::Constant(7, 1e3);
  VectorXd output = VectorXd::Constant(2, NAN);
  for (int t = 0; t < 100; ++t) net.step(state, {key, value, 1e4, key}, {}, {output});
  CHECK(output.allFinite());
  CHECK(leaf(state, "W").allFinite());
  CHECK(leaf(state, "R").allFinite());
}

TEST_CASE("the Delta MLP of empty matrices answers with the query", "[delta_mlp]") {
  const auto mlp = make_memory<double>("DeltaMlp", {3, 3, {{"hidden", 4}}});
  const auto state = mlp.initial_state();
  const VectorXd query = VectorXd::LinSpaced(3, -1, 1);
  VectorXd output(3);
  mlp.read(state, {query}, {output});
  CHECK(output == query);
}

}  // namespace
