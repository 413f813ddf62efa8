// As memories.cpp, for the delta rule in all its forms and the memories with a decay a token.

#include <fastweights/feature_maps/dpfp.hpp>
#include <fastweights/memories/adaptors/cached_segments.hpp>
#include <fastweights/memories/adaptors/deferred.hpp>
#include <fastweights/memories/adaptors/feature_mapped.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/gated_linear_attention.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

using NormaliserF = AttentionNormaliser<float>;
using NormaliserD = AttentionNormaliser<double>;

template class DeltaRule<double, 3, 4>;
// Before version 16 clang instantiates members whose constraints fail, which the merging of these
// is.
#if !defined(__clang__) || __clang_major__ >= 16
template class DeltaRule<double, 3, 4, NormaliserD>;
template class DeltaRule<double, 3, 4, NoNormaliser, KeyValueVectorBeta>;
template class DeltaRule<float, 3, 4, NormaliserF, KeyValueVectorBeta>;
#endif

template class Deferred<DeltaRule<double, 3, 4>, 1>;
template class Deferred<DeltaRule<float, 3, 4>, 5, Eigen::half>;
template class Deferred<DeltaRule<float, 3, 4>, 5, Eigen::half, 2>;
template class Deferred<DeltaRule<double, 3, 4>, 5, std::int8_t, 2>;

template class GatedLinearAttention<double, 3, 4, KeyValueDecay>;
template class GatedDeltaRule<double, 3, 4>;
// Before version 16 clang instantiates members whose constraints fail, which the chunk of these is.
#if !defined(__clang__) || __clang_major__ >= 16
template class GatedLinearAttention<double, 3, 4>;
template class GatedDeltaRule<float, 3, 4, KeyValueBetaVectorDecay>;
#endif

template class CachedSegments<DeltaRule<double, 3, 4>, 2>;
template class CachedSegments<GatedDeltaRule<float, 3, 4>>;
template class CachedSegments<GatedLinearAttention<double, 3, 1, KeyValueDecay>, 1>;

template class FeatureMapped<GatedLinearAttention<double, 16, 4>, Dpfp<2>, 4>;

template struct PooledInputs<KeyValueBeta<4, 3>, 2>;
template struct PooledInputs<KeyValueBetaDecay<Dynamic, Dynamic>, Dynamic>;
template struct KeyValueDecay<4, 3>;
template struct KeyValueDecay<Dynamic, Dynamic>;
template struct KeyValueFeatureDecay<4, 3, 3>;
template struct KeyValueFeatureDecay<Dynamic, Dynamic, Dynamic>;
template struct KeyValueBetaDecay<4, 3>;
template struct KeyValueBetaDecay<Dynamic, Dynamic>;
template struct KeyValueBetaFeatureDecay<4, 3, 3>;
template struct KeyValueBetaFeatureDecay<Dynamic, Dynamic, Dynamic>;

}  // namespace fw
