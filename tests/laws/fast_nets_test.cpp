#include <fastweights/memories/recurrent/delta_delta_net.hpp>
#include <fastweights/memories/recurrent/delta_mlp.hpp>

#include "support/laws.hpp"

namespace {

using Eigen::VectorXd;
using fw::Index;

TEST_CASE("the Delta-Delta net obeys the laws", "[laws][delta_delta_net]") {
  using Net = fw::DeltaDeltaNet<double>;
  for (const Index d : {1, 3, 17, 65}) laws::every_memory(Net(d));
  laws::gradients_are_exact(Net(5), 17, false);
  laws::gradients_are_exact(Net(1), 6, false);
  laws::float_follows_double(Net(17), false);
  laws::takes_autodiff(Net(4), false);
  laws::fixed_is_dynamic(fw::DeltaDeltaNet<double, 4>(), Net(4), false);
}
TEST_CASE("the Delta MLP obeys the laws", "[laws][delta_mlp]") {
  using Mlp = fw::DeltaMlp<double>;
  for (const auto& [d, hidden] : {std::pair<Index, Index>{1, 1}, {3, 17}, {65, 4}, {64, 64}})
    laws::every_memory(Mlp(d, hidden));
  laws::gradients_are_exact(Mlp(5, 4), 17, false);
  laws::gradients_are_exact(Mlp(3, 1), 6, false);
  laws::float_follows_double(Mlp(17, 3), false);
  laws::takes_autodiff(Mlp(4, 3), false);
  laws::fixed_is_dynamic(fw::DeltaMlp<double, 4, 3>(), Mlp(4, 3), false);
}

TEST_CASE("fast nets stay finite for large preactivations", "[delta_delta_net][delta_mlp]") {
  const fw::DeltaDeltaNet<double> net(2);
  auto state = fw::initial_state(net);
  VectorXd key = VectorXd::Constant(2, -1e4), value = VectorXd::Constant(7, 1e3), output(2);
  const double beta = 1e4;
  for (int t = 0; t < 100; ++t) fw::step(net, state, {key, value, beta, key}, {}, {output});
  CHECK(output.allFinite());
  CHECK(state.W.allFinite());
  CHECK(state.R.allFinite());
}

TEST_CASE("the Delta MLP of empty matrices answers with the query", "[delta_mlp]") {
  const fw::DeltaMlp<double> mlp(3, 4);
  const auto state = fw::initial_state(mlp);
  const VectorXd query = VectorXd::LinSpaced(3, -1, 1);
  VectorXd output(3);
  fw::read(mlp, state, {query}, {output});
  CHECK(output == query);
}

}  // namespace
