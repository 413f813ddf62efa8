#pragma once

#include <fastweights/core/products.hpp>
#include <fastweights/kernels/pair.hpp>

namespace fw::detail {
inline namespace FASTWEIGHTS_KERNELS {

/// Two tokens as the passes of a backward pass take them, `one` before `two`. Where the past fades,
/// every token has a decay a column, and what meets a matrix before the fading has that multiplied
/// in.
template <class S> struct BackwardPair {
  struct One {
    const S *k, *q, *dy, *u;
    S *c, *dk, *dq, *dv, *dbeta;
    S beta;
    S* met = nullptr;           // q ∘ (Wᵀdy) − k ∘ (…), for the gradient of decays
    const S* decays = nullptr;  // α
    const S *k_before = nullptr, *q_before = nullptr;  // α k and α q, both decays for token two
  };
  One one, two;
  bool lonely;               // then `two` is not there, and all that belongs to it is as of `one`
  const S* looked_up;        // α_2 k_1
  const S* fades = nullptr;  // α_1 α_2
  S met[4];                  // α_2 k_1·k_2, k_1·q_1, α_2 k_1·q_2, k_2·q_2
  S answered[4];             // u_1·dy_1, u_1·dy_2, u_2·dy_2, u_1·c_2
  AheadOf<S> ahead;
};

/// A sequence and its gradients. Of the sum rule u are the values, c is added to dv, and β may be a
/// rate that all tokens have. Decays are one a token or one a column; the first token's has been
/// applied already.
template <class S> struct BackwardTokens {
  Columns<const S> k = {}, q = {}, dy = {}, u = {}, beta = {}, decays = {};
  Columns<S> c = {}, dk = {}, dq = {}, dv = {}, dbeta = {}, met = {};
  bool one_decay = false;

  BackwardTokens from(Index t) const {
    BackwardTokens rest = *this;
    for (auto* columns : {&rest.k, &rest.q, &rest.dy, &rest.u, &rest.beta, &rest.decays})
      *columns = columns->from(t);
    for (auto* columns : {&rest.c, &rest.dk, &rest.dq, &rest.dv, &rest.dbeta, &rest.met})
      *columns = columns->from(t);
    return rest;
  }
  typename BackwardPair<S>::One token(Index t) const {
    return {k(t),   q(t),    dy(t), u(t),     c(t),
            dk(t),  dq(t),   dv(t), dbeta(t), beta.data != nullptr ? *beta(t) : S(1),
            met(t), nullptr, k(t),  q(t)};
  }
};

/// Gives pairs their decays, and what has decays multiplied in.
template <class S> class PairFades {
 public:
  static constexpr Index most = 16;  // pairs at a time: what is made for them is to stay near

  PairFades(const BackwardTokens<S>& tokens, Index columns)
      : tokens_(tokens),
        columns_(columns),
        room_(thread_room<S, PairFades>((most * vectors + 1) * columns)) {
    vector(most * vectors).setOnes();
  }

  /// The decays of the i-th pair made, whose first token is `t`.
  void spread(BackwardPair<S>& p, Index t, Index i) {
    p.one.decays = decays_of(t, i * vectors);
    p.two.decays = p.lonely ? ones() : decays_of(t + 1, i * vectors + 1);
  }
  void multiply(BackwardPair<S>& p, Index i) {
    Index to = i * vectors + 2;
    p.looked_up = product(to++, p.two.decays, p.one.k);
    p.fades = product(to++, p.one.decays, p.two.decays);
    p.one.k_before = product(to++, p.one.decays, p.one.k);
    p.one.q_before = product(to++, p.one.decays, p.one.q);
    p.two.k_before = product(to++, p.fades, p.two.k);
    p.two.q_before = product(to++, p.fades, p.two.q);
  }

 private:
  using Vector = Eigen::Map<Eigen::Array<S, Eigen::Dynamic, 1>>;
  using Given = Eigen::Map<const Eigen::Array<S, Eigen::Dynamic, 1>>;
  static constexpr Index vectors = 8;

  Vector vector(Index i) { return {room_ + i * columns_, columns_}; }
  const S* ones() { return vector(most * vectors).data(); }
  const S* decays_of(Index t, Index to) {
    if (t == 0) return ones();
    if (!tokens_.one_decay) return tokens_.decays(t);
    vector(to).setConstant(*tokens_.decays(t));
    return vector(to).data();
  }
  const S* product(Index to, const S* a, const S* b) {
    vector(to) = Given(a, columns_) * Given(b, columns_);
    return vector(to).data();
  }

  const BackwardTokens<S>& tokens_;
  Index columns_;
  S* room_;
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
      p.looked_up = p.one.k;
      prepare(p, at, i);
    }
    f(pairs, count, back ? all - done - count : done);
    done += count;
  }
}

}  // namespace FASTWEIGHTS_KERNELS
}  // namespace fw::detail
