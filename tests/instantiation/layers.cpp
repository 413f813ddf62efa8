// As memories.cpp, for layers and what trains them.

#include <fastweights/fastweights.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

template struct Linear<float>;
template struct Embedding<float>;
template struct LayerNorm<float>;
template struct RmsNorm<float>;
template struct CausalConv<float>;
template struct RelativeAttention<float>;
template struct SwiGlu<float>;
template struct FeedForward<float>;

template struct FastWeightLayer<DeltaRnn<float>, SumNormalised<EluPlusOne>>;
template struct FastWeightLayer<DeltaLstm<double>, SumNormalised<EluPlusOne>>;
template struct FastWeightLayer<RecurrentDeltaNet<float>>;

using Delta = DeltaRule<float, 4, 4>;
using Cache = KeyValueCache<double>;
using Block = PreNormBlock<LayerNorm<float>, FastWeightLayer<Delta>, FeedForward<float>>;

template struct FastWeightLayer<Delta>;
template struct FastWeightLayer<Delta, L2Normalised<EluPlusOne>, RmsNorm<float>>;
template struct FastWeightLayer<Cache, IdentityMap, LayerNorm<double>>;
template struct IdentityLayer<float>;
template struct SummedHeads<Delta>;
template struct SummedHeads<Cache>;
template class Hypernetwork<float>;
template class FastWeightMemory<double, 4, 3>;
template struct PreNormBlock<LayerNorm<float>, FastWeightLayer<Delta>, FeedForward<float>>;
template struct PreNormBlock<LayerNorm<float>, RelativeAttention<float>, FeedForward<float>>;
template struct LanguageModel<Block>;
template struct AdamW<Linear<double>>;
template struct AdamW<LanguageModel<Block>>;

}  // namespace fw
