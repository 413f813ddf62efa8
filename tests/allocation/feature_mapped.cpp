#include <fastweights/fastweights.hpp>

#include "checks.hpp"

namespace {

template <template <int, int> class Memory, class Map, int D> void check_behind(Index d, Map map) {
  using M = Memory<D, Map::template fixed_features<D>>;
  check(fw::FeatureMapped<M, Map, D>(M(d, map.features(d)), d, map));
}

template <int Dv, int Dk> using Delta = fw::DeltaRule<float, Dv, Dk>;
template <int Dv, int Dk>
using Sum = fw::LinearAttention<float, Dv, Dk, fw::AttentionNormaliser<float>>;
template <int Dv, int Dk> using Gated = fw::GatedLinearAttention<float, Dv, Dk>;

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
