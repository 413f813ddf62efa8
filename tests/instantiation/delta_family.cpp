// As memories.cpp, for delta rules whose keys of look-up, write and removal may differ.

#include <fastweights/memories/rules/comba.hpp>
#include <fastweights/memories/rules/efla.hpp>
#include <fastweights/memories/rules/erase_then_delta.hpp>
#include <fastweights/memories/rules/fine_grained_delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_product.hpp>
#include <fastweights/memories/rules/gated_delta_rule_2.hpp>
#include <fastweights/memories/rules/gated_oja_rule.hpp>
#include <fastweights/memories/rules/longhorn.hpp>
#include <fastweights/memories/rules/low_rank_rule.hpp>
#include <fastweights/memories/rules/preconditioned_delta_rule.hpp>
#include <fastweights/memories/rules/q_delta.hpp>
#include <fastweights/memories/rules/rwkv6.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

template class Comba<double, 3, 4>;
template class Efla<double, 3, 4>;
template class EraseThenDelta<double, 3, 4>;
template class EraseThenDelta<double, 3, 4, false>;
template class FineGrainedDeltaRule<double, 3>;
template class QDelta<double, 3, 4>;
template class GatedDeltaProduct<double, 2, 3, 4>;
template class GatedDeltaRule2<double, 3, 4>;
template class GatedOjaRule<double, 3, 4>;
template class Longhorn<double, 3, 4>;
template class Longhorn<float, 3, 4, LonghornForm::exact>;
template class LowRankRule<double, 3, 4>;
template class LowRankRule<float, 3, 4, KeyValueRemoval>;
template class PreconditionedDeltaRule<double, 3, 4>;
template class Rwkv6<double, 3, 4>;

template struct KeyValueLookupBetaDecay<4, 3>;
template struct KeyValueBetaProduct<4, 3, 2>;
template struct KeyValueDecayEraseWrite<4, 3>;
template struct KeyValueBetaRowDecay<4, 3>;
template struct ChannelBetaDecay<4>;
template struct KeyValueRemoval<4, 3>;
template struct KeyValueRemovalVectorDecay<4, 3>;
template struct PreconditionedKeyValue<4, 3, 4>;
template struct KeyValueBonus<4, 3>;

}  // namespace fw
