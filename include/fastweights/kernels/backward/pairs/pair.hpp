#pragma once

#include <algorithm>
#include <fastweights/kernels/scan/pair.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// Two tokens of a backward pass, `one` before `two`. With one decay per column, vectors that are
/// multiplied by a matrix before its decay include the decays. With one decay per token, the matrix
/// is stored divided by `divisor` (DeferredDecay).
template <class S> struct BackwardPair {
  struct One {
    const S *k, *q, *dy, *e;
    S *du, *dk, *dq, *dv, *dbeta;
    S beta;
    // q ∘ (Wᵀdy) − k ∘ (…), for the gradient of decays; for one decay per token its sum
    S* decay_terms = nullptr;
    const S *k_before, *q_before;  // α k and α q; α_1 α_2 k and α_1 α_2 q for token two
    const S* decays = nullptr;     // α of every column
    S decay = S(1);                // α of the token
    S write_scale = S(1);          // scale of its updates in the backward passes
  };
  One one, two;
  bool single;                // there is no second token: `two` is a copy of `one` with β = 0
  const S* lookup_key;        // α_2 k_1
  const S* decays = nullptr;  // α_1 α_2 of every column
  S divisor = S(1);           // the matrix before the pair is the stored matrix times this
  S decay = S(1);             // factor of the stored matrix
  S inverse_divisor = S(1);   // 1 / divisor after the pair
  S key_products[4];          // α_2 k_1·k_2, k_1·q_1, α_2 k_1·q_2, k_2·q_2
  S error_products[4];        // e_1·dy_1, e_1·dy_2, e_2·dy_2, e_1·du_2
  // With two pairs per pass, products with the pair that is processed before this pair:
  S previous_key_products[4];    // k_1 and k_2 with its q
  S previous_error_products[4];  // e_1 and e_2 with its dy, or dy_1 and dy_2 with its e
  Prefetches<S> prefetches;
};

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
  typename BackwardPair<S>::One token(Index t) const {
    return {k(t),           q(t),  dy(t), e(t),     du(t),
            dk(t),          dq(t), dv(t), dbeta(t), beta.data != nullptr ? *beta(t) : S(1),
            decay_terms(t), k(t),  q(t)};
  }
};

/// Calls f(pairs, count, index of the first pair) for batches of pairs, in forward or backward
/// order. Calls prepare(pair, its first token, its index in the batch) for each pair before.
template <Index batch, class S, class Prepare, class F>
void for_pairs(const BackwardTokens<S>& t, Index steps, bool backward, const Prepare& prepare,
               const F& f) {
  BackwardPair<S> pairs[batch];
  const Index all = (steps + 1) / 2;
  for (Index done = 0; done < all;) {
    const Index count = std::min(batch, all - done);
    for (Index i = 0; i < count; ++i) {
      const Index at = 2 * (backward ? all - 1 - done - i : done + i);
      BackwardPair<S>& p = pairs[i];
      p.single = at + 1 == steps;
      p.one = t.token(at);
      p.two = p.single ? p.one : t.token(at + 1);
      if (p.single) p.two.beta = S(0);
      p.lookup_key = p.one.k;
      prepare(p, at, i);
    }
    f(pairs, count, backward ? all - done - count : done);
    done += count;
  }
}

}  // namespace fw::detail
