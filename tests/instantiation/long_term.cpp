// As memories.cpp, for long-term layers and what joins them to short-term ones.

#include <fastweights/continuous/density.hpp>
#include <fastweights/layers/attention/joined_attention.hpp>
#include <fastweights/layers/attention/relative_attention.hpp>
#include <fastweights/layers/attention/strided_conv.hpp>
#include <fastweights/memories/attention/compressive_memory.hpp>
#include <fastweights/memories/attention/continuous_memory.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

using Learned = MixtureDensity<float, LearnedComponents<float>>;
using Parabola = MixtureDensity<double, LearnedComponents<double>, ParabolaShape>;
using Even = ContinuousMemory<float, Learned>;
using Sticky = ContinuousMemory<double, Parabola, GaussianBasis<double>, StickySampling>;
using Slotted = LongTermLayer<CompressiveMemory<float>, StridedConv<float>>;
using Drawn = LongTermLayer<Sticky, ConvGate<double>>;
template struct LongTermLayer<Even>;
template struct LongTermLayer<Sticky, ConvGate<double>>;
template struct LongTermLayer<CompressiveMemory<float>, StridedConv<float>>;
template struct JoinedAttention<RelativeAttention<float>, Slotted>;
template struct JoinedAttention<RelativeAttention<double>, Drawn>;

}  // namespace fw
