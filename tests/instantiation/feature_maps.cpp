// As memories.cpp, for feature maps and memories behind them.

#include <fastweights/feature_maps/chain.hpp>
#include <fastweights/feature_maps/dpfp.hpp>
#include <fastweights/feature_maps/elu_plus_one.hpp>
#include <fastweights/feature_maps/favor_plus.hpp>
#include <fastweights/feature_maps/identity.hpp>
#include <fastweights/memories/adaptors/feature_mapped.hpp>
#include <fastweights/memories/attention/key_value_cache.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

template struct Dpfp<1>;
template struct Dpfp<3>;
template class FavorPlus<float>;
template struct Chain<EluPlusOne, SumNormalise>;
template struct Chain<Dpfp<2>, FavorPlus<float>, L2Normalise>;

template class FeatureMapped<DeltaRule<double, 16, 4>, SumNormalised<Dpfp<2>>, 4>;
template class FeatureMapped<LinearAttention<double>, FavorPlus<double>>;
// Before version 16 clang instantiates members whose constraints fail, as the gradients here.
#if !defined(__clang__) || __clang_major__ >= 16
template class FeatureMapped<KeyValueCache<float, 3, 4>, L2Normalised<IdentityMap>, 3>;
#endif

}  // namespace fw
