#include <fastweights/algorithms/scan.hpp>
#include <fastweights/feature_maps/chain.hpp>
#include <fastweights/feature_maps/dpfp.hpp>
#include <fastweights/feature_maps/elu_plus_one.hpp>
#include <fastweights/feature_maps/identity.hpp>
#include <fastweights/memories/adaptors/feature_mapped.hpp>
#include <fastweights/memories/attention/compressive_memory.hpp>
#include <fastweights/memories/attention/key_value_cache.hpp>
#include <fastweights/memories/recurrent/delta_lstm.hpp>
#include <fastweights/memories/recurrent/delta_rnn.hpp>
#include <fastweights/memories/recurrent/recurrent_delta_net.hpp>
#include <fastweights/memories/recurrent/self_referential_matrix.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_linear_attention.hpp>
#include <fastweights/memories/rules/log_linear_attention.hpp>
#include <fastweights/memories/rules/test_time_training.hpp>
#include <limits>
#include <string>

#include "support/catch.hpp"
#include "support/error_of.hpp"

/// \file
/// Members of the types of memories alone: constructors that the table does not call, and members
/// of one rule.

namespace {

using Catch::Matchers::ContainsSubstring;
using fw::Index;
using Delta = fw::DeltaRule<double>;
using Cache = fw::KeyValueCache<double>;
using L2 = fw::L2Normalised<fw::IdentityMap>;

static_assert(fw::Differentiable<fw::FeatureMapped<Delta, L2>>);
static_assert(!fw::Differentiable<fw::FeatureMapped<Cache, L2>>);
static_assert(!fw::Chunkable<fw::FeatureMapped<Delta, L2>>);

TEST_CASE("a map that does not fit the memory throws", "[feature_mapped]") {
  using Doubled = fw::FeatureMapped<Delta, fw::Dpfp<1>>;
  CHECK_THROWS_WITH(Doubled(Delta({4, 3}), 4),
                    "Dpfp then DeltaRule: a mapped key has 8 rows, the memory expects 4");
  CHECK_THROWS_WITH(Doubled(Delta({4, 3}), 0),
                    "Dpfp then DeltaRule: d_key is 0, expected at least 1");
  using FixedDelta = fw::DeltaRule<double, 4, 3>;
  using Fixed = fw::FeatureMapped<FixedDelta, fw::EluPlusOne, 4>;
  CHECK_THROWS_WITH(Fixed(FixedDelta(), 5), "EluPlusOne then DeltaRule: d_key is 5, expected 4");
}

TEST_CASE("a full cache with a feature map throws as the cache does", "[feature_mapped]") {
  const fw::FeatureMapped<Cache, L2> m(Cache({3, 2}, {5, fw::WhenFull::refuse}), 3);
  auto state = fw::initial_state(m);
  const Eigen::MatrixXd key = Eigen::MatrixXd::Ones(3, 6), value = Eigen::MatrixXd::Ones(2, 6);
  Eigen::MatrixXd y(2, 6);
  CHECK_THROWS_AS(fw::scan(m, state, {key, value}, {key}, {y}), std::length_error);
  CHECK(state.length == 0);
  CHECK(state.keys == fw::initial_state(m).keys);
}

TEST_CASE("a map of mapped keys keeps a decay for every feature", "[feature_mapped]") {
  using Gated = fw::FeatureMapped<fw::GatedLinearAttention<double, 16, 3>, fw::Dpfp<2>, 4>;
  static_assert(decltype(fw::WriteToken<Gated>::key)::RowsAtCompileTime == 4);
  static_assert(decltype(fw::WriteToken<Gated>::decay)::RowsAtCompileTime == 16);
  const Gated once(fw::GatedLinearAttention<double, 16, 3>(), 4);
  const fw::FeatureMapped<Gated, fw::L2Normalise> twice(once, 4);
  CHECK(twice.signature().write().key.rows == 4);
  CHECK(twice.signature().write().decay.rows == 16);
}

TEST_CASE("a compressive memory shows the slots that are filled", "[compressive]") {
  const fw::CompressiveMemory<double> m({.d = 2, .heads = 1, .chunk = 1, .capacity = 3, .rate = 2});
  auto state = fw::initial_state(m);
  const Eigen::Vector2d x(1, 2);
  for (Index t = 0; t < 11; ++t) {
    fw::write(m, state, {x});
    CHECK(m.slots(state).cols() == std::min<Index>((t + 1) / 2, 3));
  }
}

TEST_CASE("levels whose columns no Index counts are refused", "[options]") {
  using LogLinear = fw::LogLinearAttention<float>;
  constexpr Index most = std::numeric_limits<Index>::max();
  for (const Index levels : {most / 4 + 1, (Index(1) << 62) + 1, most})
    CHECK_THROWS_WITH(LogLinear({4, 2}, levels),
                      "LogLinearAttention: the number of levels is " + std::to_string(levels) +
                          ", expected at most " + std::to_string(most / 4) + " for d_k = 4");
  CHECK_NOTHROW(LogLinear({4, 2}, most / 4));
  CHECK_NOTHROW(LogLinear({1, 2}, most));
}

TEST_CASE("fixed sizes refuse others", "[options]") {
  CHECK_THROWS_WITH((fw::CompressiveMemory<double, 4>({5, 1, 1, 1, 1})),
                    "CompressiveMemory: d is 5, expected 4");
  const fw::Sizes<3, 17> sizes{2, 17};
  const auto wrong = ContainsSubstring("d_k is 2, expected 3");
  CHECK_THROWS_WITH((fw::DeltaRnn<double, 3, 17>(sizes)), wrong);
  CHECK_THROWS_WITH((fw::DeltaLstm<double, 3, 17>(sizes)), wrong);
  CHECK_THROWS_WITH((fw::RecurrentDeltaNet<double, 3, 17>(sizes)), wrong);
  CHECK_THROWS_WITH((fw::SelfReferentialMatrix<double, 3, 17>(sizes)), wrong);
}

TEST_CASE("sizes that do not fit an objective or a model are refused", "[ttt]") {
  CHECK_THROWS_AS(fw::TttLinear<double>({2, 3}, {.batch = 3}), std::invalid_argument);
  CHECK_THROWS_AS(fw::TttMlp<double>({2}, {.batch = 1}), std::invalid_argument);
  CHECK_THROWS_AS(fw::TttLinear<double>({2}, {.objective = {0}}), std::invalid_argument);
}

}  // namespace
