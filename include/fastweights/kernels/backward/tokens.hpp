#pragma once

#include <fastweights/kernels/scan/pair.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// A sequence and its gradients. e are the errors; for sum rules they are the values, du is null,
/// and β may be a rate shared by all tokens. There is one decay per token, or one per column and
/// token. The decay of the first token has been applied already.
template <class S> struct BackwardTokens {
  Columns<const S> k = {}, q = {}, dy = {}, e = {}, beta = {}, decays = {};
  Columns<S> du = {}, dk = {}, dq = {}, dv = {}, dbeta = {}, decay_terms = {};

  BackwardTokens from(Index t) const {
    BackwardTokens rest = *this;
    for (auto* columns : {&rest.k, &rest.q, &rest.dy, &rest.e, &rest.beta, &rest.decays})
      *columns = columns->from(t);
    for (auto* columns : {&rest.du, &rest.dk, &rest.dq, &rest.dv, &rest.dbeta, &rest.decay_terms})
      *columns = columns->from(t);
    return rest;
  }
};

}  // namespace fw::detail
