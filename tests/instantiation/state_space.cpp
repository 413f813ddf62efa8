// As memories.cpp, for state space models, normalised gates, slots and levels.

#include <fastweights/feature_maps/symmetric_power.hpp>
#include <fastweights/feature_maps/taylor.hpp>
#include <fastweights/memories/adaptors/feature_mapped.hpp>
#include <fastweights/memories/rules/cyclic_flow_attention.hpp>
#include <fastweights/memories/rules/gated_slot_attention.hpp>
#include <fastweights/memories/rules/hgrn.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>
#include <fastweights/memories/rules/log_linear_attention.hpp>
#include <fastweights/memories/rules/mamba3.hpp>
#include <fastweights/memories/rules/mamba3_mimo.hpp>
#include <fastweights/memories/rules/mlstm.hpp>
#include <fastweights/memories/rules/normalised_gated_attention.hpp>
#include <fastweights/memories/rules/rwkv4.hpp>
#include <fastweights/memories/rules/selective_scan.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

template class CyclicFlowAttention<double, 3, 4, 2>;
template class GatedSlotAttention<double, 3, 4, 2>;
template class Hgrn<double, 3>;
template class LogLinearAttention<double, 3, 4>;
template class Mamba3<double, 3, 4>;
template class Mamba3<float, 4, 3, 1>;
template class Mamba3Mimo<double, 3, 1>;
template class Mamba3Mimo<double, 1, 4, 1>;
template class Mamba3Mimo<float, 4, 3, 2, 1>;
template class Mlstm<double, 3, 4>;
template class NormalisedGatedAttention<double, 3, 4>;
template class NormalisedGatedAttention<float, 3, 4, KeyValueVectorDecay>;
template class Rwkv4<double, 3>;
template class SelectiveScan<double, 3, 4>;

template struct SymmetricPower<2>;
template struct SymmetricPower<4>;
template class FeatureMapped<NormalisedGatedAttention<double, 10, 4>, SymmetricPower<2>, 4>;

template struct KeyValueSlots<4, 3, 2>;
template struct ValueDecay<3>;
template struct KeyValueDecayLevels<4, 3>;
template struct KeyValueRotation<4, 3, 2>;
template struct RankedRotation<4, 3, 2, 2>;
template struct KeyValueGates<4, 3>;
template struct KeyValueStep<4, 3>;
template struct KeyValueChannels<3>;

}  // namespace fw
