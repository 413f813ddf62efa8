#include <fastweights/feature_maps/dpfp.hpp>
#include <fastweights/feature_maps/elu_plus_one.hpp>
#include <fastweights/feature_maps/favor_plus.hpp>
#include <fastweights/feature_maps/identity.hpp>
#include <fastweights/memories/adaptors/feature_mapped.hpp>
#include <fastweights/memories/attention/key_value_cache.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/gated_linear_attention.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>

#include "support/laws.hpp"

namespace {

using fw::Index;

using Delta = fw::DeltaRule<double>;
using Sum = fw::LinearAttention<double>;
using DpfpSum = fw::SumNormalised<fw::Dpfp<2>>;
using L2 = fw::L2Normalised<fw::IdentityMap>;
using Gated = fw::GatedLinearAttention<double>;
using GatedDelta = fw::GatedDeltaRule<double, -1, -1, fw::KeyValueBetaVectorDecay>;
template <int Dk> using FixedDelta = fw::DeltaRule<double, Dk, 3>;

static_assert(fw::Differentiable<fw::FeatureMapped<Delta, L2>>);
static_assert(!fw::Differentiable<fw::FeatureMapped<fw::KeyValueCache<double>, L2>>);
static_assert(!fw::Chunkable<fw::FeatureMapped<Delta, L2>>);

// Equal up to 1e-15, since the same map runs on the same columns.
template <class M, class Map> void is_the_map_by_hand(const M& memory, Index d_key, Map map) {
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
  for (Index i = 0; i < 20; ++i) {
    const auto a = laws::tokens(m, all, i);
    const auto b = laws::tokens(memory, by_hand, i);
    fw::step(m, s, std::get<0>(a), std::get<1>(a), std::get<2>(a));
    fw::step(memory, t, std::get<0>(b), std::get<1>(b), std::get<2>(b));
  }
  CHECK(laws::difference(all.outputs, by_hand.outputs) <= 1e-15);
  CHECK(laws::difference(s, t) <= 1e-15);
}

TEST_CASE("a feature-mapped memory agrees with applying the map by hand", "[feature_mapped]") {
  is_the_map_by_hand(Delta({.key_size = 4, .value_size = 3}), 4, fw::EluPlusOne());
  is_the_map_by_hand(Delta({.key_size = 20, .value_size = 3}), 5, DpfpSum());
  is_the_map_by_hand(Delta({.key_size = 4, .value_size = 3}), 4, L2());
  is_the_map_by_hand(Sum({.key_size = 4, .value_size = 3}), 4, fw::EluPlusOne());
  is_the_map_by_hand(Sum({.key_size = 20, .value_size = 3}), 5, DpfpSum());
  is_the_map_by_hand(Sum({.key_size = 4, .value_size = 3}), 4, L2());
  is_the_map_by_hand(Sum({.key_size = 12, .value_size = 3}), 4, fw::FavorPlus<double>(4, 6, 1));
  is_the_map_by_hand(Gated({.key_size = 20, .value_size = 3}), 5, DpfpSum());
  is_the_map_by_hand(GatedDelta({.key_size = 12, .value_size = 3}), 4,
                     fw::FavorPlus<double>(4, 6, 1));
  is_the_map_by_hand(fw::KeyValueCache<double>({.key_size = 4, .value_size = 3}, {7}), 4, L2());
}

TEST_CASE("a map that does not fit the memory throws", "[feature_mapped]") {
  using Catch::Matchers::Message;
  using Doubled = fw::FeatureMapped<Delta, fw::Dpfp<1>>;
  CHECK_THROWS_MATCHES(
      Doubled(Delta({.key_size = 4, .value_size = 3}), 4), std::invalid_argument,
      Message("Dpfp then DeltaRule: a mapped key has 8 rows, the memory expects 4"));
  CHECK_THROWS_MATCHES(Doubled(Delta({.key_size = 4, .value_size = 3}), 0), std::invalid_argument,
                       Message("Dpfp then DeltaRule: d_key is 0, expected at least 1"));
  using Fixed = fw::FeatureMapped<FixedDelta<4>, fw::EluPlusOne, 4>;
  CHECK_THROWS_MATCHES(Fixed(FixedDelta<4>(), 5), std::invalid_argument,
                       Message("EluPlusOne then DeltaRule: d_key is 5, expected 4"));
}

TEST_CASE("a full cache with a feature map throws as the cache does", "[feature_mapped]") {
  using Cache = fw::KeyValueCache<double>;
  const fw::FeatureMapped<Cache, L2> m(
      Cache({.key_size = 3, .value_size = 2}, {5, fw::WhenFull::refuse}), 3);
  fw::Random random(3);
  auto all = fw::testing::random_sequences(m, 6, random);
  auto s = fw::initial_state(m);
  const auto before = s;
  CHECK_THROWS_AS(laws::scan(m, s, all), std::length_error);
  CHECK(laws::difference(s, before) == 0);
}

}  // namespace
