// As memories.cpp, for the recurrent fast weight programmers.

#include <fastweights/algorithms/backward.hpp>
#include <fastweights/memories/recurrent/delta_delta_net.hpp>
#include <fastweights/memories/recurrent/delta_lstm.hpp>
#include <fastweights/memories/recurrent/delta_mlp.hpp>
#include <fastweights/memories/recurrent/delta_rnn.hpp>
#include <fastweights/memories/recurrent/recurrent_delta_net.hpp>
#include <fastweights/memories/recurrent/self_referential_matrix.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

template class DeltaRnn<double, 3, 4>;
template class DeltaLstm<double, 3, 4>;
template class DeltaDeltaNet<double, 3>;
template class DeltaMlp<double, 3, 4>;
template class RecurrentDeltaNet<double, 3, 4>;
template class SelfReferentialMatrix<double, 3, 4>;

template struct RecurrentKeyValueBeta<4, 3>;
template struct RecurrentKeyValueBeta<Dynamic, Dynamic, 3>;
template struct PreactivationKeyValueBeta<4, 3>;
template struct SelfReferential<Dynamic, Dynamic>;

}  // namespace fw
