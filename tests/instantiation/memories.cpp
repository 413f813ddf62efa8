// Every public class template, instantiated with all its members: a member of a template that
// nobody calls is otherwise never compiled. Memories have fixed sizes here. With dynamic sizes the
// table of any_memory/ compiles them, in three scalars and with every algorithm.

#include <fastweights/algorithms/backward.hpp>
#include <fastweights/memories/attention/delta_former.hpp>
#include <fastweights/memories/attention/forgetting_attention.hpp>
#include <fastweights/memories/attention/key_value_cache.hpp>
#include <fastweights/memories/attention/parallax.hpp>
#include <fastweights/memories/attention/path_attention.hpp>
#include <fastweights/memories/attention/stick_breaking_attention.hpp>
#include <fastweights/memories/rules/hebbian.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>
#include <fastweights/memories/rules/programmer1991.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

using NormaliserF = AttentionNormaliser<float>;
using NormaliserD = AttentionNormaliser<double>;

template struct AttentionNormaliser<float>;

template class LinearAttention<double, 3, 4>;
template class LinearAttention<double, 3, 4, NormaliserD>;
template class LinearAttention<float, 3, 4, NoNormaliser, CompensatedSum>;

template class HebbianMemory<double, 3, 4>;

template class Programmer1991<double, 3, 4>;
template class Programmer1991<float, 3, 4, Sigmoid>;
template class Programmer1991<double, Dynamic, Dynamic, Relu>;
template class Programmer1991<double, 3, 4, Identity>;

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

template class DeltaFormer<double, 3, 4>;
template class ForgettingAttention<double, 3, 4>;
template class Parallax<double, 3, 4>;
template class PathAttention<double, 3, 4>;
template class StickBreakingAttention<double, 3, 4>;
template class StickBreakingAttention<float, 3, 4, false>;

template struct KeyValueBetaQuery<4, 3>;
template struct KeyValueReflection<4, 3>;
template struct KeyValueTwoQueries<4, 3>;

}  // namespace fw
