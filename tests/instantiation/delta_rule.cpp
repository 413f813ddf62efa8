// As memories.cpp, for the delta rule in all its forms.

#include <fastweights/memories/adaptors/deferred.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

using NormaliserF = AttentionNormaliser<float>;
using NormaliserD = AttentionNormaliser<double>;

template class DeltaRule<float>;
template class DeltaRule<double, 3, 4>;
// Before version 16 clang instantiates members whose constraints fail, which the merging of these
// is.
#if !defined(__clang__) || __clang_major__ >= 16
template class DeltaRule<float, Dynamic, Dynamic, NormaliserF>;
template class DeltaRule<double, 3, 4, NormaliserD>;
template class DeltaRule<float, Dynamic, Dynamic, NoNormaliser, KeyValueVectorBeta>;
template class DeltaRule<double, 3, 4, NoNormaliser, KeyValueVectorBeta>;
template class DeltaRule<float, 3, 4, NormaliserF, KeyValueVectorBeta>;
template class DeltaRule<double, Dynamic, Dynamic, NormaliserD, KeyValueVectorBeta>;
template class Deferred<DeltaRule<float, Dynamic, Dynamic, NormaliserF>, 5, float, 2>;
#endif

template class Deferred<DeltaRule<float>>;
template class Deferred<DeltaRule<double, 3, 4>, 1>;
template class Deferred<DeltaRule<float, 3, 4>, 5, Eigen::half>;
template class Deferred<DeltaRule<float, 3, 4>, 5, Eigen::half, 2>;
template class Deferred<DeltaRule<float>, 5, float, 2>;
template class Deferred<DeltaRule<float>, 5, std::int8_t>;
template class Deferred<DeltaRule<double, 3, 4>, 5, std::int8_t, 2>;

}  // namespace fw
