// As memories.cpp, for attention to the last tokens.

#include <fastweights/memories/attention/delta_former.hpp>
#include <fastweights/memories/attention/forgetting_attention.hpp>
#include <fastweights/memories/attention/parallax.hpp>
#include <fastweights/memories/attention/path_attention.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

template class DeltaFormer<float>;
template class DeltaFormer<double, 3, 4>;
template class ForgettingAttention<float>;
template class ForgettingAttention<double, 3, 4>;
template class Parallax<float>;
template class Parallax<double, 3, 4>;
template class PathAttention<float>;
template class PathAttention<double, 3, 4>;

template struct KeyValueBetaQuery<4, 3>;
template struct KeyValueReflection<4, 3>;
template struct KeyValueTwoQueries<4, 3>;

}  // namespace fw
