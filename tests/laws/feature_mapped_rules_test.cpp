#include <fastweights/any_memory/any_memory.hpp>
#include <fastweights/feature_maps/dpfp.hpp>
#include <fastweights/feature_maps/elu_plus_one.hpp>
#include <fastweights/feature_maps/favor_plus.hpp>
#include <fastweights/feature_maps/identity.hpp>
#include <fastweights/feature_maps/normalise.hpp>
#include <fastweights/feature_maps/symmetric_power.hpp>
#include <fastweights/memories/adaptors/feature_mapped.hpp>
#include <fastweights/memories/attention/key_value_cache.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_product.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/gated_linear_attention.hpp>
#include <fastweights/memories/rules/normalised_gated_attention.hpp>

#include "support/catch.hpp"
#include "support/laws.hpp"

/// \file
/// Memories behind feature maps that are not in the table: two keys a token, a map of a map, and
/// other pairs.

namespace {

using fw::AnyMemory;
using fw::Dynamic;
using fw::FeatureMapped;
using fw::Index;
using laws::Complex;
using L2 = fw::L2Normalised<fw::IdentityMap>;

// The keys are short, since the delta rule diverges on long keys that the map does not normalise.
const std::vector<std::pair<Index, Index>> some_sizes = {{3, 3}, {4, 1}, {5, 17}};

template <class M, class Map>
AnyMemory<typename M::Scalar> mapped(Index d_key, Index dv, const Map& map = Map()) {
  return FeatureMapped<M, Map>(M({map.features(d_key), dv}), d_key, map);
}
template <class S> AnyMemory<S> product(Index d_key, Index dv) {
  return mapped<fw::GatedDeltaProduct<S>, L2>(d_key, dv);
}
template <class S> AnyMemory<S> delta(Index d_key, Index dv) {
  return mapped<fw::DeltaRule<S>, fw::SumNormalised<fw::Dpfp<2>>>(d_key, dv);
}
template <class S> AnyMemory<S> twice(Index d_key, Index dv) {
  using Once = FeatureMapped<fw::GatedLinearAttention<S>, fw::Dpfp<2>>;
  return FeatureMapped<Once, fw::L2Normalise>(Once({{4 * d_key, dv}}, d_key), d_key);
}
template <class S> AnyMemory<S> fourth_power(Index d_key, Index dv) {
  return mapped<fw::NormalisedGatedAttention<S>, fw::SymmetricPower<4>>(d_key, dv);
}

TEST_CASE("memories behind feature maps that are not in the table obey the laws",
          "[laws][feature_mapped]") {
  for (const auto& [d_key, dv] : some_sizes) {
    INFO("d_key = " << d_key << ", d_v = " << dv);
    laws::all(product<double>(d_key, dv));
    laws::all(delta<double>(d_key, dv));
    laws::all(twice<double>(d_key, dv));
    laws::float_follows_double(laws::runs_of(product<float>(d_key, dv)),
                               laws::runs_of(product<double>(d_key, dv)));
  }
}

TEST_CASE("gradients behind feature maps that are not in the table are exact",
          "[laws][feature_mapped]") {
  for (const auto& [d_key, dv] : some_sizes) {
    INFO("d_key = " << d_key << ", d_v = " << dv);
    laws::gradients_are_exact(delta<double>(d_key, dv), delta<Complex>(d_key, dv), 9);
    laws::gradients_are_exact(twice<double>(d_key, dv), twice<Complex>(d_key, dv), 9);
  }
  laws::gradients_are_exact(fourth_power<double>(3, 4), fourth_power<Complex>(3, 4), 6, true);
}

// The same map on the same columns.
template <class M, class Map> void is_by_hand(const M& memory, Index d_key, const Map& map) {
  INFO(Map::name << " then " << memory.name);
  laws::Run<double> a(FeatureMapped<M, Map>(memory, d_key, map),
                      AnyMemory<double>(memory).initial_state(), false, 20, 0, 2);
  a.state = a.memory.initial_state();
  laws::Run<double> b(memory, AnyMemory<double>(memory).initial_state(), false, 20, 0, 2);
  for (auto* records : {&a, &b}) records->all.outputs.matrices[0].setZero();
  for (std::size_t i = 0; i < a.all.inputs.matrices.size(); ++i)
    b.all.inputs.matrices[i] = a.all.inputs.matrices[i];
  fw::apply(map, a.all.inputs["key"], b.all.inputs["key"]);
  fw::apply(map, a.all.queries["query"], b.all.queries["query"]);
  a.scan();
  b.scan();
  CHECK(laws::difference(a.all.outputs, b.all.outputs) <= 1e-15);
  CHECK(laws::difference(a.state, b.state) <= 1e-15);
}

TEST_CASE("a memory behind a map is the memory of keys and queries that were mapped by hand",
          "[feature_mapped]") {
  const fw::FavorPlus<double> favor(4, 6, 1);
  using Kimi = fw::GatedDeltaRule<double, Dynamic, Dynamic, fw::KeyValueBetaVectorDecay>;
  is_by_hand(fw::DeltaRule<double>({4, 3}), 4, fw::EluPlusOne());
  is_by_hand(fw::DeltaRule<double>({4, 3}), 4, L2());
  is_by_hand(fw::LinearAttention<double>({20, 3}), 5, fw::SumNormalised<fw::Dpfp<2>>());
  is_by_hand(Kimi({12, 3}), 4, favor);
  is_by_hand(fw::KeyValueCache<double>({4, 3}, {7}), 4, L2());
}

}  // namespace
