#include <fastweights/feature_maps/symmetric_power.hpp>
#include <fastweights/feature_maps/taylor.hpp>
#include <fastweights/memories/adaptors/feature_mapped.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>
#include <fastweights/memories/rules/normalised_gated_attention.hpp>

#include "every_rule/rule.hpp"

namespace every_rule {

// Keys of 16 rows, as in the papers of the maps: W is d × features.
template <class M, class Map>
Rule mapped(std::string name, Index d, double flops_per_entry, Map map = {}) {
  const Index features = map.features(16);
  return rule(name + ", " + std::to_string(features) + " features of 16",
              fw::FeatureMapped<M, Map>(M({features, d}), 16, map),
              {.lines = flops_per_entry * static_cast<double>(features)});
}

void add_features(Index d, Rules& rules) {
  using Sum = fw::LinearAttention<float, -1, -1, fw::AttentionNormaliser<float>>;
  using Power = fw::NormalisedGatedAttention<float>;
  rules.push_back(mapped<Sum, fw::TaylorMap>("LinearAttention of TaylorMap (Based)", d, 7));
  rules.push_back(
      mapped<Sum, fw::SymmetricPower<2>>("LinearAttention of SymmetricPower (ReBased)", d, 7));
  rules.push_back(mapped<Power, fw::SymmetricPower<2>>(
      "NormalisedGatedAttention of SymmetricPower (power attention)", d, 5));
}

}  // namespace every_rule
