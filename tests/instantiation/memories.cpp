// Every public class template, instantiated with all its members: a member of a template that
// nobody calls is otherwise never compiled. In float where sizes are dynamic and in double where
// they are fixed; the laws of the memories run with the other two.

#include <fastweights/algorithms/backward.hpp>
#include <fastweights/memories/attention/key_value_cache.hpp>
#include <fastweights/memories/rules/hebbian.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>
#include <fastweights/memories/rules/programmer1991.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

using NormaliserF = AttentionNormaliser<float>;
using NormaliserD = AttentionNormaliser<double>;

template struct AttentionNormaliser<float>;

template class LinearAttention<float>;
template class LinearAttention<double, 3, 4>;
template class LinearAttention<float, Dynamic, Dynamic, NormaliserF>;
template class LinearAttention<double, 3, 4, NormaliserD>;
template class LinearAttention<float, 3, 4, NoNormaliser, CompensatedSum>;

template class HebbianMemory<float>;
template class HebbianMemory<double, 3, 4>;

template class Programmer1991<float>;
template class Programmer1991<double, 3, 4>;
template class Programmer1991<float, 3, 4, Sigmoid>;
template class Programmer1991<double, Dynamic, Dynamic, Relu>;
template class Programmer1991<double, 3, 4, Identity>;

template class KeyValueCache<float>;
template class KeyValueCache<double, 3, 4>;

template struct Checkpoints<LinearAttention<float>>;
template struct Checkpoints<KeyValueCache<double, 3, 4>>;

template struct KeyValue<4, 3>;
template struct KeyValue<Dynamic, Dynamic>;
template struct KeyValueBeta<4, 3>;
template struct KeyValueBeta<Dynamic, Dynamic>;
template struct KeyValueVectorBeta<4, 3>;
template struct KeyValueVectorBeta<Dynamic, Dynamic>;

template class TokenView<float, 4>;
template class TokenView<const double, Dynamic>;
template class TokenView<float, Dynamic, 3>;
template class SequenceView<float, 4>;
template class SequenceView<const double, Dynamic>;
template class SequenceView<double, 1>;
template class ScalarSequence<float>;
template class ScalarSequence<const double>;

}  // namespace fw
