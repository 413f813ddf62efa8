// As memories.cpp, for the memories with a decay a token.

#include <fastweights/feature_maps/dpfp.hpp>
#include <fastweights/memories/adaptors/feature_mapped.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/gated_linear_attention.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

template class GatedLinearAttention<float, Dynamic, Dynamic, KeyValueDecay>;
template class GatedLinearAttention<double, 3, 4, KeyValueDecay>;
template class GatedDeltaRule<float>;
template class GatedDeltaRule<double, 3, 4>;
// Before version 16 clang instantiates members whose constraints fail, which the chunk of these is.
#if !defined(__clang__) || __clang_major__ >= 16
template class GatedLinearAttention<float>;
template class GatedLinearAttention<double, 3, 4>;
template class GatedDeltaRule<float, 3, 4, KeyValueBetaVectorDecay>;
template class GatedDeltaRule<double, Dynamic, Dynamic, KeyValueBetaVectorDecay>;
#endif

template class FeatureMapped<GatedLinearAttention<float>, Dpfp<1>>;
template class FeatureMapped<GatedLinearAttention<double, 16, 4>, Dpfp<2>, 4>;

template struct KeyValueDecay<4, 3>;
template struct KeyValueDecay<Dynamic, Dynamic>;
template struct KeyValueFeatureDecay<4, 3, 3>;
template struct KeyValueFeatureDecay<Dynamic, Dynamic, Dynamic>;
template struct KeyValueBetaDecay<4, 3>;
template struct KeyValueBetaDecay<Dynamic, Dynamic>;
template struct KeyValueBetaFeatureDecay<4, 3, 3>;
template struct KeyValueBetaFeatureDecay<Dynamic, Dynamic, Dynamic>;

}  // namespace fw
