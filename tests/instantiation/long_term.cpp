// As memories.cpp, for long-term layers and their operation in a network.

#include <fastweights/continuous/density.hpp>
#include <fastweights/layers/attention/strided_conv.hpp>
#include <fastweights/memories/attention/compressive_memory.hpp>
#include <fastweights/memories/attention/continuous_memory.hpp>
#include <fastweights/networks/operations/long_term_attention.hpp>

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
template struct networks::AttendLongTerm<Slotted>;
template struct networks::AttendLongTerm<Drawn>;

}  // namespace fw
