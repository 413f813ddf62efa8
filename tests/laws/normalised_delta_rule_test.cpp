#include <fastweights/memories/rules/delta_rule.hpp>

#include "support/laws.hpp"

/// \file
/// The delta rule with attention normalisation. It has no backward pass of its own, so it also
/// tests the checkpoints.

namespace {

using fw::Dynamic;
using fw::Index;
using Normaliser = fw::AttentionNormaliser<double>;
template <int Dk, int Dv> using Normalised = fw::DeltaRule<double, Dk, Dv, Normaliser>;
template <int Dk, int Dv>
using NormalisedVector = fw::DeltaRule<double, Dk, Dv, Normaliser, fw::KeyValueVectorBeta>;

static_assert(!fw::Mergeable<Normalised<Dynamic, Dynamic>>);

TEST_CASE("delta rule with attention normalisation obeys the laws", "[laws][delta_rule]") {
  const auto make = [](Index dk, Index dv) { return Normalised<Dynamic, Dynamic>({dk, dv}); };
  laws::at_all_sizes(make, /*positive=*/true);
  laws::gradients_are_exact(NormalisedVector<Dynamic, Dynamic>({.key_size = 3, .value_size = 4}), 8,
                            true);
}

TEST_CASE("delta rule with attention normalisation in fixed sizes", "[laws][delta_rule]") {
  laws::fixed_is_dynamic(Normalised<63, 65>(),
                         Normalised<Dynamic, Dynamic>({.key_size = 63, .value_size = 65}), true);
}

TEST_CASE("reused checkpoints have the interval √T of the new T", "[delta_rule]") {
  using M = Normalised<Dynamic, Dynamic>;  // has no backward pass of its own
  const M m({.key_size = 2, .value_size = 3});
  fw::Random random(1);
  fw::Checkpoints<M> checkpoints;
  for (const Index steps : {1, 100, 9}) {
    auto all = fw::testing::random_sequences(m, steps, random);
    auto state = fw::initial_state(m);
    fw::scan(m, state, fw::view<fw::WriteSequence<M>>(all.inputs),
             fw::view<fw::ReadSequence<M>>(all.queries), fw::view<fw::OutSequence<M>>(all.outputs),
             checkpoints);
    CHECK(checkpoints.interval * checkpoints.interval == steps);
  }
}

TEST_CASE("any interval between checkpoints gives the same gradients", "[delta_rule]") {
  using M = Normalised<Dynamic, Dynamic>;
  const M m({.key_size = 2, .value_size = 3});
  fw::Random random(1);
  auto all = fw::testing::random_sequences(m, 10, random, true);
  Eigen::MatrixXd dy = Eigen::MatrixXd::Random(3, 10), first;
  for (const Index interval : {1, 2, 3, 7, 10, 50}) {
    fw::Checkpoints<M> checkpoints;
    checkpoints.requested_interval = interval;
    auto state = fw::initial_state(m);
    auto ds = fw::zero_gradient(m);
    Eigen::MatrixXd dk = Eigen::MatrixXd::Zero(2, 10), dv = Eigen::MatrixXd::Zero(3, 10),
                    dq = Eigen::MatrixXd::Zero(2, 10);
    Eigen::VectorXd dbeta = Eigen::VectorXd::Zero(10);
    const auto inputs = fw::view<fw::WriteSequence<M>>(all.inputs);
    const auto queries = fw::view<fw::ReadSequence<M>>(all.queries);
    fw::scan(m, state, inputs, queries, fw::view<fw::OutSequence<M>>(all.outputs), checkpoints);
    CHECK(static_cast<Index>(checkpoints.states.size()) == (10 + interval - 1) / interval);
    fw::backward(m, checkpoints, inputs, queries, {dy}, ds, {dk, dv, dbeta}, {dq});
    if (interval == 1) first = dk;
    CHECK((dk - first).norm() <= 1e-14 * first.norm());  // kernels round differently per interval
  }
}

}  // namespace
