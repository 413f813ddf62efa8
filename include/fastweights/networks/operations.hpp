#pragma once

#include <fastweights/networks/operations/attention.hpp>
#include <fastweights/networks/operations/clamp.hpp>
#include <fastweights/networks/operations/combine.hpp>
#include <fastweights/networks/operations/constants.hpp>
#include <fastweights/networks/operations/convolution.hpp>
#include <fastweights/networks/operations/dropout.hpp>
#include <fastweights/networks/operations/elementwise.hpp>
#include <fastweights/networks/operations/experts.hpp>
#include <fastweights/networks/operations/fast_weights_rnn.hpp>
#include <fastweights/networks/operations/feature_map.hpp>
#include <fastweights/networks/operations/full_memory.hpp>
#include <fastweights/networks/operations/head_products.hpp>
#include <fastweights/networks/operations/memory.hpp>
#include <fastweights/networks/operations/norms.hpp>
#include <fastweights/networks/operations/recurrent.hpp>
#include <fastweights/networks/operations/relative_attention.hpp>
#include <fastweights/networks/operations/rows.hpp>
#include <fastweights/networks/operations/time.hpp>
#include <fastweights/networks/operations/weights.hpp>

/// \file
/// All operations of networks.

#define FASTWEIGHTS_OPERATIONS(prefix, S)                     \
  prefix template struct Apply<S, Exp>;                       \
  prefix template struct Apply<S, Sigmoid>;                   \
  prefix template struct Apply<S, Softplus>;                  \
  prefix template struct Apply<S, LogSigmoid>;                \
  prefix template struct Apply<S, Tanh>;                      \
  prefix template struct Apply<S, Relu>;                      \
  prefix template struct Apply<S, Square>;                    \
  prefix template struct Activate<S, fw::Silu>;               \
  prefix template struct Activate<S, fw::Gelu>;               \
  prefix template struct Affine<S>;                           \
  prefix template struct Clamp<S>;                            \
  prefix template struct Constants<S>;                        \
  prefix template struct Combine<S, Combination::sum>;        \
  prefix template struct Combine<S, Combination::difference>; \
  prefix template struct Combine<S, Combination::product>;    \
  prefix template struct Norm<S, NormKind::rms>;              \
  prefix template struct Norm<S, NormKind::l2>;               \
  prefix template struct Norm<S, NormKind::unit>;             \
  prefix template struct Norm<S, NormKind::standardise>;      \
  prefix template struct Gather<S>;                           \
  prefix template struct Concatenate<S>;                      \
  prefix template struct SumHeads<S>;                         \
  prefix template struct HeadProducts<S>;                     \
  prefix template struct Parameter<S>;                        \
  prefix template struct Embedding<S>;                        \
  prefix template struct Linear<S>;                           \
  prefix template struct Convolve<S>;                         \
  prefix template struct TokenShift<S>;                       \
  prefix template struct Dropout<S>;                          \
  prefix template struct RotaryEmbedding<S>;                  \
  prefix template struct Softmax<S>;                          \
  prefix template struct ChooseExperts<S>;                    \
  prefix template struct NormaliseRouting<S>

// Operations that few networks have, in a source of their own.
#define FASTWEIGHTS_RECURRENT_OPERATIONS(prefix, S) \
  prefix template struct GroupedConvolution<S>;     \
  prefix template struct Recur<S, RnnCell<Tanh>>;   \
  prefix template struct Recur<S, RnnCell<Relu>>;   \
  prefix template struct Recur<S, LstmCell>;        \
  prefix template struct Recur<S, GruCell>;         \
  prefix template struct RecurFastWeights<S, Relu>; \
  prefix template struct RecurFastWeights<S, Tanh>; \
  prefix template struct AttendRelatively<S>;       \
  prefix template struct StateParameter<S>

#define FASTWEIGHTS_NETWORKS(prefix, S)                                                         \
  prefix template class QuantisedMatrix<S>;                                                     \
  prefix template struct RunExperts<S>;                                                         \
  prefix template struct RunMemory<S>;                                                          \
  prefix template Value<S> memory(AnyMemory<S>, const std::vector<Value<S>>&,                   \
                                  const std::vector<Value<S>>&, const std::string&,             \
                                  const LearnedState<S>&);                                      \
  prefix template Value<S> detail::run_memory(AnyMemory<S>, const std::vector<Value<S>>&,       \
                                              const std::vector<Value<S>>&, const std::string&, \
                                              const LearnedState<S>&, bool);                    \
  prefix template struct Network<S>;                                                            \
  prefix template class Builder<S>

// Functions that add an operation to a network. Those that only call another one are left out.
#define FASTWEIGHTS_FUNCTIONS_OF_VALUES(prefix, S)                                               \
  prefix template Value<S> clamp(const Value<S>&, double, double);                               \
  prefix template Value<S> combine<Combination::sum>(const Value<S>&, const Value<S>&);          \
  prefix template Value<S> combine<Combination::difference>(const Value<S>&, const Value<S>&);   \
  prefix template Value<S> combine<Combination::product>(const Value<S>&, const Value<S>&);      \
  prefix template Value<S> convolution(const Value<S>&, const std::string&, ConvolutionOptions); \
  prefix template Value<S> dropout(const Value<S>&, double, const std::string&);                 \
  prefix template Value<S> apply<Exp>(const Value<S>&);                                          \
  prefix template Value<S> apply<Sigmoid>(const Value<S>&);                                      \
  prefix template Value<S> apply<Softplus>(const Value<S>&);                                     \
  prefix template Value<S> apply<LogSigmoid>(const Value<S>&);                                   \
  prefix template Value<S> apply<Tanh>(const Value<S>&);                                         \
  prefix template Value<S> apply<Relu>(const Value<S>&);                                         \
  prefix template Value<S> apply<Square>(const Value<S>&);                                       \
  prefix template Value<S> activate<fw::Silu>(const Value<S>&);                                  \
  prefix template Value<S> activate<fw::Gelu>(const Value<S>&);                                  \
  prefix template Value<S> affine(double, const Value<S>&, double);                              \
  prefix template Value<S> head_products(const Value<S>&, const std::string&, Index, Index,      \
                                         const HeadRows&, bool);                                 \
  prefix template Value<S> norm<NormKind::rms>(const Value<S>&, Index, double);                  \
  prefix template Value<S> norm<NormKind::l2>(const Value<S>&, Index, double);                   \
  prefix template Value<S> norm<NormKind::unit>(const Value<S>&, Index, double);                 \
  prefix template Value<S> norm<NormKind::standardise>(const Value<S>&, Index, double);          \
  prefix template Value<S> weighted_norm<NormKind::rms>(const Value<S>&, const std::string&,     \
                                                        const NormOptions&);                     \
  prefix template Value<S> weighted_norm<NormKind::standardise>(                                 \
      const Value<S>&, const std::string&, const NormOptions&);                                  \
  prefix template Value<S> gather(const Value<S>&, std::vector<Index>);                          \
  prefix template Value<S> concatenate(const std::vector<Value<S>>&);                            \
  prefix template Value<S> tile(const Value<S>&, Index);                                         \
  prefix template Value<S> repeat_heads(const Value<S>&, Index, Index);                          \
  prefix template Value<S> join_heads(const std::vector<Value<S>>&, Index);                      \
  prefix template Value<S> sum_heads(const Value<S>&, Index);                                    \
  prefix template Value<S> softmax(const Value<S>&, Index);                                      \
  prefix template Value<S> top_k_experts(const Value<S>&, const Choice&,                         \
                                         const std::vector<Value<S>>&);                          \
  prefix template Value<S> normalise_routing(const Value<S>&, double);                           \
  prefix template Value<S> convolution(const Value<S>&, const std::string&, Index, bool);        \
  prefix template Value<S> token_shift(const Value<S>&, const std::string&);                     \
  prefix template Value<S> rotary_embedding(const Value<S>&, Index, Index, double, bool);        \
  prefix template Value<S> parameter(Builder<S>&, const std::string&, Index, Initialiser);       \
  prefix template Value<S> parameter_matrix(Builder<S>&, const std::string&, Index, Index,       \
                                            Initialiser);                                        \
  prefix template Value<S> state_parameter(Builder<S>&, const std::string&, Index, Index,        \
                                           Initialiser, Index);                                  \
  prefix template Value<S> embedding(Builder<S>&, const std::string&, Index, Index, Index);      \
  prefix template Value<S> linear(const Value<S>&, const std::string&, Index, bool)

#ifdef FASTWEIGHTS_COMPILED
namespace fw::inline FASTWEIGHTS_ABI::networks {
FASTWEIGHTS_OPERATIONS(extern, float);
FASTWEIGHTS_OPERATIONS(extern, double);
FASTWEIGHTS_RECURRENT_OPERATIONS(extern, float);
FASTWEIGHTS_RECURRENT_OPERATIONS(extern, double);
FASTWEIGHTS_NETWORKS(extern, float);
FASTWEIGHTS_FUNCTIONS_OF_VALUES(extern, float);
FASTWEIGHTS_NETWORKS(extern, double);
FASTWEIGHTS_FUNCTIONS_OF_VALUES(extern, double);
#ifdef FASTWEIGHTS_COMPILED_COMPLEX
FASTWEIGHTS_OPERATIONS(extern, std::complex<double>);
FASTWEIGHTS_RECURRENT_OPERATIONS(extern, std::complex<double>);
FASTWEIGHTS_NETWORKS(extern, std::complex<double>);
FASTWEIGHTS_FUNCTIONS_OF_VALUES(extern, std::complex<double>);
#endif
}  // namespace fw::networks
#endif
