#include <fastweights/fastweights.hpp>

#include "checks.hpp"

namespace {

template <template <int, int> class Memory, class Map, int D> void check_behind(Index d, Map map) {
  using M = Memory<Map::template fixed_features<D>, D>;
  check(fw::FeatureMapped<M, Map, D>(M({.key_size = map.features(d), .value_size = d}), d, map));
}

template <int Dk, int Dv> using Delta = fw::DeltaRule<float, Dk, Dv>;
template <int Dk, int Dv>
using Sum = fw::LinearAttention<float, Dk, Dv, fw::AttentionNormaliser<float>>;
template <int Dk, int Dv> using Gated = fw::GatedLinearAttention<float, Dk, Dv>;

template <int D> void check_mapped(Index d) {
  using Dpfp = fw::SumNormalised<fw::Dpfp<2>>;
  check_behind<Sum, fw::EluPlusOne, D>(d, {});
  check_behind<Delta, fw::L2Normalised<fw::IdentityMap>, D>(d, {});
  check_behind<Delta, fw::SumNormalised<fw::EluPlusOne>, D>(d, {});
  check_behind<Delta, Dpfp, D>(d, {});
  check_behind<Gated, Dpfp, D>(d, {});
  check_behind<Sum, fw::FavorPlus<float>, D>(d, fw::FavorPlus<float>(d, 2 * d, 1));
}

}  // namespace

void check_feature_mapped() {
  check_mapped<3>(3);
  check_mapped<16>(16);
  for (const Index d : {3, 64}) check_mapped<Dynamic>(d);
}
