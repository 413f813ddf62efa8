#include <fastweights/algorithms/step.hpp>
#include <fastweights/feature_maps/dpfp.hpp>
#include <fastweights/feature_maps/elu_plus_one.hpp>
#include <fastweights/feature_maps/favor_plus.hpp>
#include <fastweights/feature_maps/identity.hpp>
#include <fastweights/feature_maps/normalise.hpp>
#include <fastweights/memories/adaptors/feature_mapped.hpp>
#include <fastweights/memories/attention/key_value_cache.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>

#include "support/catch.hpp"
#include "support/largest_entry.hpp"
#include "support/typed_sequences.hpp"

/// \file
/// Pairs of a feature map and a memory that are not in the table: a scan is that of keys and
/// queries that were mapped by hand.

namespace {

using fw::Dynamic;
using fw::Index;

template <class M, class Map> void is_by_hand(const M& memory, Index d_key, const Map& map) {
  INFO(Map::name << " then " << M::name);
  const fw::FeatureMapped<M, Map> m(memory, d_key, map);
  fw::Random random(2);
  auto all = fw::testing::random_sequences(m, 20, random);
  auto by_hand = fw::testing::random_sequences(memory, 20, random);
  for_each_leaf(
      [](const auto& x, auto& y) {
        if (x.rows() == y.rows()) y = x;
      },
      all.inputs, by_hand.inputs);
  fw::apply(map, all.inputs.key, by_hand.inputs.key);
  fw::apply(map, all.queries.query, by_hand.queries.query);
  auto s = fw::initial_state(m);
  auto t = fw::initial_state(memory);
  laws::scan(m, s, all);
  laws::scan(memory, t, by_hand);
  // Equal up to rounding, since the same map runs on the same columns.
  CHECK(largest_entry(all.outputs.output - by_hand.outputs.output) <= 1e-15);
}

TEST_CASE("a memory behind any map is the memory of keys and queries that were mapped by hand",
          "[feature_mapped]") {
  using Kimi = fw::GatedDeltaRule<double, Dynamic, Dynamic, fw::KeyValueBetaVectorDecay>;
  using L2 = fw::L2Normalised<fw::IdentityMap>;
  is_by_hand(fw::DeltaRule<double>({4, 3}), 4, fw::EluPlusOne());
  is_by_hand(fw::DeltaRule<double>({4, 3}), 4, L2());
  is_by_hand(fw::LinearAttention<double>({20, 3}), 5, fw::SumNormalised<fw::Dpfp<2>>());
  is_by_hand(Kimi({12, 3}), 4, fw::FavorPlus<double>(4, 6, 1));
  is_by_hand(fw::KeyValueCache<double>({4, 3}, {7}), 4, L2());
}

TEST_CASE("a mapped memory gives the errors of the memory behind the map", "[feature_mapped]") {
  for (const Index dv : {1, 3, 17}) {
    const fw::FeatureMapped m(fw::DeltaRule<double>({6, dv}), 3, fw::Dpfp<1>());
    fw::Random random(3);
    auto all = fw::testing::random_sequences(m, 5, random);
    auto state = fw::initial_state(m), plain = state;
    for (Index t = 0; t < 5; ++t) {
      Eigen::VectorXd key(6), error = Eigen::VectorXd::Constant(dv, std::nan(""));
      fw::apply(m.map(), all.inputs.key.col(t), key);
      const Eigen::VectorXd expected = all.inputs.value.col(t) - state.W * key;
      const double beta = all.inputs.beta(0, t);
      fw::write(m, state, {all.inputs.key.col(t), all.inputs.value.col(t), beta}, {error});
      fw::write(m, plain, {all.inputs.key.col(t), all.inputs.value.col(t), beta});
      CHECK(largest_entry(error - expected) <= 1e-14);
      CHECK(largest_entry(state.W - plain.W) <= 1e-14);
    }
    Eigen::VectorXd wrong(dv + 1);
    const Eigen::MatrixXd before = state.W;
    CHECK_THROWS_AS(
        fw::write(m, state, {all.inputs.key.col(0), all.inputs.value.col(0), 1.0}, {wrong}),
        std::invalid_argument);
    CHECK(state.W == before);
  }
}
static_assert(!fw::GivesErrors<fw::FeatureMapped<fw::LinearAttention<double>, fw::EluPlusOne>>);

}  // namespace
