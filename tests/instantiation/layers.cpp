// As memories.cpp, for layers and what trains them.

#include <fastweights/fastweights.hpp>
#include <fastweights/layers/fast_weight_layer.hpp>
#include <fastweights/layers/hypernetwork.hpp>
#include <fastweights/layers/summed_heads.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

template struct FastWeightLayer<DeltaRnn<float>, SumNormalised<EluPlusOne>>;
template struct FastWeightLayer<DeltaLstm<double>, SumNormalised<EluPlusOne>>;
template struct FastWeightLayer<RecurrentDeltaNet<float>>;

using Delta = DeltaRule<float, 4, 4>;
using Cache = KeyValueCache<double>;

template struct FastWeightLayer<Delta>;
template struct FastWeightLayer<Delta, L2Normalised<EluPlusOne>>;
template struct FastWeightLayer<Cache, IdentityMap>;
template struct networks::MapFeatures<float, L2Normalised<EluPlusOne>>;
template class Hypernetwork<float>;
template class FastWeightMemory<double, 4, 3>;
template struct detail::LinearMap<float>;
template struct AdamW<detail::LinearMap<double>>;
template struct AdamW<networks::Network<float>>;

}  // namespace fw
