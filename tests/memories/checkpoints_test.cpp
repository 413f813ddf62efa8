#include <fastweights/algorithms/backward.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/testing/sequences.hpp>

#include "support/catch.hpp"

/// \file
/// The checkpoints of a scan: their number, and whose they are. Only the types of memories show
/// them.

namespace {

using fw::Dynamic;
using fw::Index;
using Delta = fw::DeltaRule<double>;
using Normaliser = fw::AttentionNormaliser<double>;
using Normalised = fw::DeltaRule<double, Dynamic, Dynamic, Normaliser>;

// A scan of random tokens that fills checkpoints, and its backward pass.
template <class M> struct Example {
  M m{{.key_size = 2, .value_size = 3}};
  fw::testing::Sequences<M> all, gradients;
  fw::StateOf<M> state = fw::initial_state(m), ds = fw::zero_gradient(m);

  explicit Example(Index steps, bool positive = false) {
    fw::Random random(1);
    all = fw::testing::random_sequences(m, steps, random, positive);
    gradients = all;
    fw::set_zero(gradients);
    gradients.outputs.output.setRandom();
  }
  void scan(fw::Checkpoints<M>& checkpoints) {
    fw::scan(m, state, inputs(), queries(), fw::view<fw::OutSequence<M>>(all.outputs), checkpoints);
  }
  void backward(fw::Checkpoints<M>& checkpoints) {
    fw::backward(m, checkpoints, inputs(), queries(),
                 fw::view<fw::OutGradSequence<M>>(gradients.outputs), ds,
                 fw::view<fw::WriteGradSequence<M>>(gradients.inputs),
                 fw::view<fw::ReadGradSequence<M>>(gradients.queries));
  }
  auto inputs() { return fw::view<fw::WriteSequence<M>>(all.inputs); }
  auto queries() { return fw::view<fw::ReadSequence<M>>(all.queries); }
};

TEST_CASE("backward requires the checkpoints of the same sequence", "[delta_rule]") {
  Example<Delta> run(6), longer(9);
  fw::Checkpoints<Delta> checkpoints;
  CHECK_THROWS_AS(run.backward(checkpoints), std::invalid_argument);  // no forward pass
  longer.scan(checkpoints);
  CHECK_THROWS_AS(run.backward(checkpoints), std::invalid_argument);  // of another sequence
  run.scan(checkpoints);
  CHECK_NOTHROW(run.backward(checkpoints));
}

TEST_CASE("backward refuses inputs and queries of a wrong size", "[delta_rule]") {
  using Catch::Matchers::ContainsSubstring;
  Example<Delta> run(6);
  fw::Checkpoints<Delta> checkpoints;
  run.scan(checkpoints);
  Example<Delta> wrong_key = run, wrong_query = run;
  wrong_key.all.inputs.key.setZero(3, 6);
  CHECK_THROWS_WITH(wrong_key.backward(checkpoints), ContainsSubstring("key has 3 rows"));
  wrong_query.all.queries.query.setZero(3, 6);
  CHECK_THROWS_WITH(wrong_query.backward(checkpoints), ContainsSubstring("query has 3 rows"));
  CHECK(wrong_query.gradients.inputs.key.isZero(0));
}

// The normalised delta rule has no backward pass of its own.
TEST_CASE("reused checkpoints have the interval √T of the new T", "[delta_rule]") {
  fw::Checkpoints<Normalised> checkpoints;
  for (const Index steps : {1, 100, 9}) {
    Example<Normalised>(steps).scan(checkpoints);
    CHECK(checkpoints.interval * checkpoints.interval == steps);
  }
}

TEST_CASE("any interval between checkpoints gives the same gradients", "[delta_rule]") {
  Eigen::MatrixXd first, dy = Eigen::MatrixXd::Random(3, 10);
  for (const Index interval : {1, 2, 3, 7, 10, 50}) {
    Example<Normalised> run(10, true);
    run.gradients.outputs.output = dy;
    fw::Checkpoints<Normalised> checkpoints;
    checkpoints.requested_interval = interval;
    run.scan(checkpoints);
    CHECK(static_cast<Index>(checkpoints.states.size()) == (10 + interval - 1) / interval);
    run.backward(checkpoints);
    const Eigen::MatrixXd& dk = run.gradients.inputs.key;
    if (interval == 1) first = dk;
    CHECK((dk - first).norm() <= 1e-14 * first.norm());  // kernels round differently per interval
  }
}

}  // namespace
