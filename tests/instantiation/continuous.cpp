// As memories.cpp, for continuous signals, long-term memories and what stands around
// them.

#include <fastweights/continuous/density.hpp>
#include <fastweights/continuous/gibbs_density.hpp>
#include <fastweights/layers/attention/smoothing_gate.hpp>
#include <fastweights/layers/attention/strided_conv.hpp>
#include <fastweights/memories/attention/compressive_memory.hpp>
#include <fastweights/memories/attention/continuous_memory.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

using Learned = MixtureDensity<float, LearnedComponents<float>>;
using Parabola = MixtureDensity<double, LearnedComponents<double>, ParabolaShape>;
using Moments = MixtureDensity<double, MatchedComponent<double>>;
using Rectangles = RectangularBasis<float>;
using Gaussians = GaussianBasis<double>;

template class GaussianBasis<float>;
template class RectangularBasis<float>;
template class GibbsDensity<float>;
template struct LearnedComponents<float>;
template struct MatchedComponent<float>;
template struct MixtureDensity<float, LearnedComponents<float>>;
template struct MixtureDensity<double, LearnedComponents<double>, ParabolaShape>;
template struct MixtureDensity<double, MatchedComponent<double>>;
template class detail::OperatorCache<float>;

#ifndef __clang__  // version 14 instantiates members whose constraints do not hold
template class ContinuousMemory<float, Learned>;
template class ContinuousMemory<double, Moments, Gaussians, EvenSampling, 4>;
#endif
template class ContinuousMemory<double, Parabola, Gaussians, StickySampling>;
template class ContinuousMemory<float, GibbsDensity<float>, Rectangles, StickySampling>;
template class CompressiveMemory<double, 4>;
template struct Chunks<4>;
template struct Chunks<Dynamic>;
template struct DrawnChunks<4>;
template struct DrawnChunks<Dynamic>;

template struct NoGate<float>;
template struct ConvGate<float>;
template struct AffineGate<float>;
template struct StridedConv<float>;

}  // namespace fw
