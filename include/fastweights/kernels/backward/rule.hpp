#pragma once

#include <fastweights/kernels/backward/backward.hpp>
#include <fastweights/kernels/rule.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// Converts a rule's sequence and gradients for the passes. For a rule with a delta term the caller
/// must set `e`, the errors of the forward pass, and `du`, a buffer of the same size.
template <class M>
BackwardTokens<typename M::Scalar> backward_tokens(const M&, const WriteSequence<M>& inputs,
                                                   const ReadSequence<M>& queries,
                                                   const OutGradSequence<M>& dy,
                                                   const WriteGradSequence<M>& dinputs,
                                                   const ReadGradSequence<M>& dqueries) {
  BackwardTokens<typename M::Scalar> t;
  t.k = columns_of(inputs.key);
  t.q = columns_of(queries.query);
  t.dy = columns_of(dy.output);
  t.dk = columns_of(dinputs.key);
  t.dv = columns_of(dinputs.value);
  t.dq = columns_of(dqueries.query);
  if constexpr (M::has_delta_term) {
    t.beta = columns_of(inputs.beta);
    t.dbeta = columns_of(dinputs.beta);
  } else {
    t.e = columns_of(inputs.value);
  }
  if constexpr (requires { inputs.decay; }) t.decays = columns_of(inputs.decay);
  return t;
}

}  // namespace fw::detail
