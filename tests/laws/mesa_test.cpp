#include <Eigen/Cholesky>
#include <fastweights/memories/rules/mesa_memory.hpp>

#include "support/laws.hpp"

namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;
using fw::Dynamic;
using fw::Index;
using Mesa = fw::MesaMemory<double>;
using Iterative = fw::MesaMemory<double, Dynamic, Dynamic, fw::ConjugateGradients>;

TEST_CASE("the Mesa memory obeys the laws", "[laws][mesa]") {
  for (const auto& [dk, dv] : {std::pair<Index, Index>{1, 1}, {3, 17}, {65, 4}, {64, 64}}) {
    INFO("d_v = " << dv << ", d_k = " << dk);
    laws::every_memory(Mesa({dk, dv}));
    laws::every_memory(Iterative({dk, dv}, {3}));
  }
  laws::float_follows_double(Mesa({17, 3}), false);
  laws::takes_autodiff(Mesa({4, 3}), false);
  laws::fixed_is_dynamic(fw::MesaMemory<double, 4, 3>(), Mesa({4, 3}), false);
}
TEST_CASE("gradients of the Mesa memory are exact for every solver", "[laws][mesa]") {
  laws::gradients_are_exact(Mesa({5, 4}), 17, false);
  laws::gradients_are_exact(Mesa({1, 3}), 6, false);
  for (const Index iterations : {0, 1, 2, 7})
    laws::gradients_are_exact(Iterative({5, 4}, {iterations}), 6, false);
  laws::gradients_are_exact(Iterative({1, 3}, {2}), 6, false);
}

template <class M> struct Stream {
  M m;
  fw::testing::Sequences<M> all;
  fw::StateOf<M> state;
  Stream(const M& memory, Index tokens) : m(memory), all(make(memory, tokens)) {
    state = fw::initial_state(m);
    laws::scan(m, state, all);
  }
  static fw::testing::Sequences<M> make(const M& memory, Index tokens) {
    fw::Random random(7);
    return fw::testing::random_sequences(memory, tokens, random);
  }
};

TEST_CASE("the Mesa memory answers with a weighted ridge regression of values on keys", "[mesa]") {
  const Stream<Mesa> s(Mesa({4, 3}), 20);
  const auto& in = s.all.inputs;
  VectorXd weights(20);
  for (Index t = 19, later = 0; t >= 0; --t) {
    weights[t] = in.beta[t];
    for (later = t + 1; later < 20; ++later) weights[t] *= in.decay[later];
  }
  const MatrixXd G = in.key * weights.asDiagonal() * in.key.transpose() + MatrixXd::Identity(4, 4),
                 W = in.value * weights.asDiagonal() * in.key.transpose();
  const VectorXd expected = W * G.ldlt().solve(s.all.queries.query.col(19));
  CHECK(largest_entry(s.all.outputs.output.col(19) - expected) <= 1e-14);
}

TEST_CASE("conjugate gradients of as many steps as keys have rows are exact", "[mesa]") {
  const Stream<Mesa> exact(Mesa({6, 3}), 20);
  const Stream<Iterative> iterative(Iterative({6, 3}, {6, 0}), 20);
  CHECK(largest_entry(exact.all.outputs.output - iterative.all.outputs.output) <= 1e-12);
}

TEST_CASE("conjugate gradients stay finite when they have converged", "[mesa]") {
  const Stream<Iterative> s(Iterative({3, 2}, {100}), 20);
  const Stream<Mesa> exact(Mesa({3, 2}), 20);
  CHECK(largest_entry(exact.all.outputs.output - s.all.outputs.output) <= 1e-4);
}

}  // namespace
