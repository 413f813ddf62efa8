#pragma once

#include <algorithm>
#include <fastweights/kernels/scan/pair.hpp>

namespace fw::detail {
inline namespace FASTWEIGHTS_KERNELS {

/// Two tokens as the passes of a backward pass take them, `one` before `two`. Where columns fade by
/// themselves, what meets a matrix before the fading has that multiplied in; where all of it fades
/// alike, the matrix is kept over `past`.
template <class S> struct BackwardPair {
  struct One {
    const S *k, *q, *dy, *u;
    S *c, *dk, *dq, *dv, *dbeta;
    S beta;
    S* decay_terms =
        nullptr;  // q ∘ (Wᵀdy) − k ∘ (…), for the gradient of decays; its sum for one decay
    const S *k_before, *q_before;  // α k and α q, both decays for token two
    const S* decays = nullptr;     // α, of every column
    S decay = S(1);                // α, of all of them
    S written = S(1);  // what it writes into a matrix gone through backwards, times this
  };
  One one, two;
  bool lonely;               // then `two` is not there, and all that belongs to it is as of `one`
  const S* lookup_key;       // α_2 k_1
  const S* fades = nullptr;  // α_1 α_2 of every column
  S past = S(1);             // what the matrix is to be multiplied by before the pair,
  S fade = S(1);             // by what it is multiplied,
  S over = S(1);             // and one over what it is to be multiplied by after it
  S key_products[4];         // α_2 k_1·k_2, k_1·q_1, α_2 k_1·q_2, k_2·q_2
  S answered[4];             // u_1·dy_1, u_1·dy_2, u_2·dy_2, u_1·c_2
  // Where two pairs are taken at a time, of this one and the one that is taken before it:
  S carried_keys[4];     // k_1 and k_2 with q of that
  S carried_answers[4];  // u_1 and u_2 with dy of that, or dy_1 and dy_2 with its u
  Prefetches<S> prefetches;
};

/// A sequence and its gradients. Of the sum rule u are the values, c is added to dv, and β may be a
/// rate that all tokens have. Decays are one a token, or one a column and token; those of the first
/// token have been applied already.
template <class S> struct BackwardTokens {
  Columns<const S> k = {}, q = {}, dy = {}, u = {}, beta = {}, decays = {};
  Columns<S> c = {}, dk = {}, dq = {}, dv = {}, dbeta = {}, decay_terms = {};

  BackwardTokens from(Index t) const {
    BackwardTokens rest = *this;
    for (auto* columns : {&rest.k, &rest.q, &rest.dy, &rest.u, &rest.beta, &rest.decays})
      *columns = columns->from(t);
    for (auto* columns : {&rest.c, &rest.dk, &rest.dq, &rest.dv, &rest.dbeta, &rest.decay_terms})
      *columns = columns->from(t);
    return rest;
  }
  typename BackwardPair<S>::One token(Index t) const {
    return {k(t),           q(t),  dy(t), u(t),     c(t),
            dk(t),          dq(t), dv(t), dbeta(t), beta.data != nullptr ? *beta(t) : S(1),
            decay_terms(t), k(t),  q(t)};
  }
};

/// Calls f(pairs, count, the first of them) with some pairs at a time, from the first to the last
/// or back; `prepare(pair, its first token, its place among the `count`)` beforehand.
template <Index most, class S, class Prepare, class F>
void for_pairs(const BackwardTokens<S>& t, Index steps, bool back, const Prepare& prepare,
               const F& f) {
  BackwardPair<S> pairs[most];
  const Index all = (steps + 1) / 2;
  for (Index done = 0; done < all;) {
    const Index count = std::min(most, all - done);
    for (Index i = 0; i < count; ++i) {
      const Index at = 2 * (back ? all - 1 - done - i : done + i);
      BackwardPair<S>& p = pairs[i];
      p.lonely = at + 1 == steps;
      p.one = t.token(at);
      p.two = p.lonely ? p.one : t.token(at + 1);
      if (p.lonely) p.two.beta = S(0);
      p.lookup_key = p.one.k;
      prepare(p, at, i);
    }
    f(pairs, count, back ? all - done - count : done);
    done += count;
  }
}

}  // namespace FASTWEIGHTS_KERNELS
}  // namespace fw::detail
