#include <fastweights/feature_maps/dpfp.hpp>
#include <fastweights/feature_maps/elu_plus_one.hpp>
#include <fastweights/feature_maps/identity.hpp>
#include <fastweights/memories/adaptors/feature_mapped.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_product.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/gated_linear_attention.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>

#include "support/laws.hpp"

namespace {

using fw::Index;

using Delta = fw::DeltaRule<double>;
using Sum = fw::LinearAttention<double>;
using Gated = fw::GatedLinearAttention<double>;
using GatedDelta = fw::GatedDeltaRule<double>;
using DpfpSum = fw::SumNormalised<fw::Dpfp<2>>;
using L2 = fw::L2Normalised<fw::IdentityMap>;

// M with a feature map. The keys are short, since the delta rule diverges on long keys that the map
// does not normalise.
template <class M, class Map, class Check> void at_some_sizes(const Check& check) {
  for (const auto& [dv, d_key] : {std::pair<Index, Index>{3, 3}, {1, 4}, {17, 5}}) {
    INFO(Map::name << ", d_v = " << dv << ", d_key = " << d_key);
    check(
        fw::FeatureMapped<M, Map>(M({.key_size = Map().features(d_key), .value_size = dv}), d_key));
  }
}

TEST_CASE("a memory with a feature map obeys the laws", "[laws][feature_mapped]") {
  const auto obeys_the_laws = [](const auto& m) { laws::all(m); };
  at_some_sizes<Delta, DpfpSum>(obeys_the_laws);
  at_some_sizes<Sum, fw::EluPlusOne>(obeys_the_laws);
  at_some_sizes<GatedDelta, L2>(obeys_the_laws);
  at_some_sizes<fw::GatedDeltaProduct<double>, L2>(obeys_the_laws);  // two keys per token
}

TEST_CASE("gradients of a memory with a feature map are exact", "[laws][feature_mapped]") {
  const auto has_exact_gradients = [](const auto& m) { laws::gradients_are_exact(m, 9, false); };
  at_some_sizes<Delta, DpfpSum>(has_exact_gradients);
  at_some_sizes<Delta, L2>(has_exact_gradients);
  at_some_sizes<Sum, fw::EluPlusOne>(has_exact_gradients);
  at_some_sizes<Gated, DpfpSum>(has_exact_gradients);
  at_some_sizes<GatedDelta, L2>(has_exact_gradients);
  laws::takes_autodiff(fw::FeatureMapped<Delta, L2>(Delta({.key_size = 4, .value_size = 3}), 4),
                       false);
}

}  // namespace
