#pragma once

#include <fastweights/kernels/backward/backward.hpp>
#include <fastweights/kernels/rule.hpp>

namespace fw::detail {
inline namespace FASTWEIGHTS_KERNELS {

/// Converts a rule's sequence and gradients for the passes. For a rule with a delta term the caller
/// must set `e`, the errors of the forward pass, and `du`, a buffer of the same size.
template <class M>
BackwardTokens<typename M::Scalar> backward_tokens(const M&, const WriteSequence<M>& in,
                                                   const ReadSequence<M>& reads,
                                                   const OutGradSequence<M>& dy,
                                                   const WriteGradSequence<M>& dw,
                                                   const ReadGradSequence<M>& dr) {
  BackwardTokens<typename M::Scalar> t;
  t.k = columns_of(in.key);
  t.q = columns_of(reads.query);
  t.dy = columns_of(dy.output);
  t.dk = columns_of(dw.key);
  t.dv = columns_of(dw.value);
  t.dq = columns_of(dr.query);
  if constexpr (M::has_delta_term) {
    t.beta = columns_of(in.beta);
    t.dbeta = columns_of(dw.beta);
  } else {
    t.e = columns_of(in.value);
  }
  if constexpr (requires { in.decay; }) t.decays = columns_of(in.decay);
  return t;
}

}  // namespace FASTWEIGHTS_KERNELS
}  // namespace fw::detail
