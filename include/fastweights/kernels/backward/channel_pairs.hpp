#pragma once

#include <algorithm>
#include <fastweights/kernels/backward/tokens.hpp>
#include <fastweights/math/products.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// Two tokens of a backward pass with one decay per column, `one` before `two`. Vectors that are
/// multiplied by a matrix before its decay include the decays.
template <class S> struct BackwardPair {
  struct One {
    const S *k, *q, *dy, *e;
    S *du, *dk, *dq, *dv, *dbeta;
    S beta;
    S* decay_terms;  // q ∘ (Wᵀdy) − k ∘ (…), for the gradient of decays; or null
    const S *k_before, *q_before;  // α k and α q; α_1 α_2 k and α_1 α_2 q for token two
    const S* decays = nullptr;     // α
  };
  One one, two;
  bool single;          // there is no second token: `two` is a copy of `one` with β = 0
  const S* lookup_key;  // α_2 k_1
  const S* decays;      // α_1 α_2
  S key_products[4];    // α_2 k_1·k_2, k_1·q_1, α_2 k_1·q_2, k_2·q_2
  S error_products[4];  // e_1·dy_1, e_1·dy_2, e_2·dy_2, e_1·du_2
  Prefetches<S> prefetches;
};

/// Makes pairs of tokens, and vectors that include decays.
template <class S> class BackwardPairs {
 public:
  using Pair = BackwardPair<S>;
  static constexpr Index batch = 16;  // pairs at a time; the decayed vectors stay in the cache

  BackwardPairs(const BackwardTokens<S>& tokens, Index steps, Index columns)
      : tokens_(tokens),
        steps_(steps),
        columns_(columns),
        buffer_(thread_buffer<S, BackwardPairs>((batch * vectors + 1) * columns)) {
    vector(batch * vectors).setOnes();
  }

  /// Calls f(pairs, count, index of the first pair) for batches of pairs, in forward or backward
  /// order. Calls prepare(pair, its first token, its index in the batch) for each pair before.
  template <class Prepare, class F>
  void for_batches(bool backward, const Prepare& prepare, const F& f) {
    const Index all = (steps_ + 1) / 2;
    for (Index done = 0; done < all;) {
      const Index count = std::min(batch, all - done);
      for (Index i = 0; i < count; ++i) {
        const Index at = 2 * (backward ? all - 1 - done - i : done + i);
        set_pair(pairs_[i], at);
        prepare(pairs_[i], at, i);
      }
      f(pairs_, count, backward ? all - done - count : done);
      done += count;
    }
  }
  /// The vectors with decays of pair i of the batch, for the backward passes.
  void set_decayed_vectors(Pair& p, Index i) {
    Index to = i * vectors;
    p.lookup_key = product(to++, p.two.decays, p.one.k);
    p.decays = product(to++, p.one.decays, p.two.decays);
    p.one.k_before = product(to++, p.one.decays, p.one.k);
    p.one.q_before = product(to++, p.one.decays, p.one.q);
    p.two.k_before = product(to++, p.decays, p.two.k);
    p.two.q_before = product(to++, p.decays, p.two.q);
  }

 private:
  using Vector = Eigen::Map<Eigen::Array<S, Eigen::Dynamic, 1>>;
  using Given = Eigen::Map<const Eigen::Array<S, Eigen::Dynamic, 1>>;
  static constexpr Index vectors = 6;

  void set_pair(Pair& p, Index t) {
    p.single = t + 1 == steps_;
    p.one = token(t);
    p.two = p.single ? p.one : token(t + 1);
    if (p.single) p.two.beta = S(0);
    p.one.decays = t == 0 ? ones() : tokens_.decays(t);
    p.two.decays = p.single ? ones() : tokens_.decays(t + 1);
  }
  typename Pair::One token(Index t) const {
    const auto& x = tokens_;
    const S beta = x.beta.data != nullptr ? *x.beta(t) : S(1);
    return {x.k(t),  x.q(t),     x.dy(t), x.e(t),           x.du(t), x.dk(t), x.dq(t),
            x.dv(t), x.dbeta(t), beta,    x.decay_terms(t), x.k(t),  x.q(t)};
  }

  Vector vector(Index i) { return {buffer_ + i * columns_, columns_}; }
  const S* ones() { return vector(batch * vectors).data(); }
  const S* product(Index to, const S* a, const S* b) {
    vector(to) = Given(a, columns_) * Given(b, columns_);
    return vector(to).data();
  }

  const BackwardTokens<S>& tokens_;
  Index steps_, columns_;
  S* buffer_;
  Pair pairs_[batch];
};

}  // namespace fw::detail
