#pragma once

#include <fastweights/kernels/backward/errors.hpp>
#include <fastweights/kernels/backward/keys.hpp>
#include <fastweights/kernels/backward/queries.hpp>

/// \file
/// Gradients of a rule of the family over a whole sequence, from the first state and, where the
/// rule looks up what a key retrieves, u_t = v_t − W̄_t k_t of the forward pass. With W̄_t = W_{t−1}
/// α_t, e_t = β_t u_t and G_t the gradient of W_t, three passes over the tokens each take one
/// matrix along:
///
///     back:     G_t = Ḡ_{t+1} α_{t+1} + dy_t q_tᵀ,   c_t = G_t k_t,   Ḡ_t = G_t − β_t c_t k_tᵀ
///     onwards:  W_t = W̄_t + e_t k_tᵀ,   dq_t = W_tᵀ dy_t,   dk_t −= β_t W̄_tᵀ c_t
///     back:     dk_t += β_t G_tᵀ u_t
///     and       dv_t = β_t c_t,   dβ_t = c_t·u_t
///
/// The latter two have the matrix transposed, so that their products run along the lanes as well.
/// Sum rules are the same with e = β v and without c in G and dk. Nothing is divided by a decay
/// that is not multiplied by it again. Cost: three times the scan, four times where columns fade by
/// themselves.

namespace fw::detail {
inline namespace FASTWEIGHTS_KERNELS {

/// u·dy and u·c of a pair, which the other passes need, and c·u for dβ.
template <bool HasDeltaTerm, class S> void answer(BackwardPair<S>& p, Index dv) {
  const auto &one = p.one, &two = p.two;
  if constexpr (HasDeltaTerm) {
    S sums[6];
    dot_products({one.u, one.u, two.u, one.u, one.u, two.u},
                 {one.dy, two.dy, two.dy, two.c, one.c, two.c}, dv, sums);
    std::copy_n(sums, 4, p.answered);
    *one.dbeta += sums[4];
    if (!p.lonely) *two.dbeta += sums[5];
  } else {
    dot_products({one.u, one.u, two.u}, {one.dy, two.dy, two.dy}, dv, p.answered);
    p.answered[3] = S(0);
  }
}

#define FASTWEIGHTS_BACKWARD_PANEL(keyword, Visit, S, R, HasDeltaTerm, decay_kind) \
  keyword template void run_pairs<Visit, S, R, HasDeltaTerm, decay_kind>(          \
      const Panel<S>&, Index, const BackwardPair<S>*, Index)
#define FASTWEIGHTS_BACKWARD_PANELS(keyword, S, R, HasDeltaTerm, decay_kind)         \
  FASTWEIGHTS_BACKWARD_PANEL(keyword, PanelErrors, S, R, HasDeltaTerm, decay_kind);  \
  FASTWEIGHTS_BACKWARD_PANEL(keyword, PanelQueries, S, R, HasDeltaTerm, decay_kind); \
  FASTWEIGHTS_BACKWARD_PANEL(keyword, PanelKeys, S, R, HasDeltaTerm, decay_kind)
#define FASTWEIGHTS_LOW_BACKWARD_PANELS(keyword, S, HasDeltaTerm, decay_kind) \
  FASTWEIGHTS_BACKWARD_PANELS(keyword, S, 1, HasDeltaTerm, decay_kind);       \
  FASTWEIGHTS_BACKWARD_PANELS(keyword, S, 2, HasDeltaTerm, decay_kind)
/// Explicit instances, or with `extern` their declarations.
#define FASTWEIGHTS_BACKWARD_KERNELS(keyword, S)                          \
  FASTWEIGHTS_LOW_BACKWARD_PANELS(keyword, S, false, DecayKind::none);    \
  FASTWEIGHTS_LOW_BACKWARD_PANELS(keyword, S, true, DecayKind::none);     \
  FASTWEIGHTS_LOW_BACKWARD_PANELS(keyword, S, false, DecayKind::scalar);  \
  FASTWEIGHTS_LOW_BACKWARD_PANELS(keyword, S, true, DecayKind::scalar);   \
  FASTWEIGHTS_LOW_BACKWARD_PANELS(keyword, S, false, DecayKind::per_key); \
  FASTWEIGHTS_LOW_BACKWARD_PANELS(keyword, S, true, DecayKind::per_key)
#define FASTWEIGHTS_TALL_BACKWARD_KERNELS(keyword, S)                \
  FASTWEIGHTS_BACKWARD_PANELS(keyword, S, 4, true, DecayKind::none); \
  FASTWEIGHTS_BACKWARD_PANELS(keyword, S, 4, true, DecayKind::scalar)

#ifdef FASTWEIGHTS_COMPILED
FASTWEIGHTS_BACKWARD_KERNELS(extern, float);
FASTWEIGHTS_BACKWARD_KERNELS(extern, double);
FASTWEIGHTS_TALL_BACKWARD_KERNELS(extern, float);
FASTWEIGHTS_TALL_BACKWARD_KERNELS(extern, double);
#endif

/// The three passes; `back`, the first and the last of them, comes before `onwards`.
template <bool HasDeltaTerm, DecayKind decay_kind, class S> class BackwardPasses {
 public:
  BackwardPasses(const BackwardTokens<S>& tokens, Index steps, Index dv, Index dk)
      : tokens_(tokens),
        steps_(steps),
        dv_(dv),
        dk_(dk),
        answered_(thread_buffer<S, Answered>(4 * ((steps + 1) / 2))),
        transposed_(dk, dv, is_low(dv)) {}

  template <class Matrix> void back(Matrix& G) {
    Panels<S, Errors, packets> errors(dv_, dk_, is_low(dk_));
    errors.copy_in(G.data(), G.colStride());
    transposed_.copy_in_transposed(G.data(), G.colStride());
    Fades fades(tokens_, dk_);
    const auto prepare = [&](Pair& p, Index at, Index i) {
      list_prefetches(p.prefetches, at - 2 * most, [&](const auto& token) {
        p.prefetches.rows.add(token.dy, token.u, token.c, token.dv);
        p.prefetches.columns.add(token.k, token.q, token.dk);
      });
      fades.spread(p, at);
      fades.multiply(p, i);
      const auto &one = p.one, &two = p.two;
      dot_products({p.lookup_key, one.k, p.lookup_key, two.k}, {two.k, one.q, two.q, two.q}, dk_,
                   p.key_products);
      carry_back(p, i);
    };
    for_pairs<most>(tokens_, steps_, true, prepare, [&](Pair* pairs, Index count, Index first) {
      run<PanelErrors>(errors, pairs, count);
      for (Index i = 0; i < count; ++i) {
        answer<HasDeltaTerm>(pairs[i], dv_);
        std::copy_n(pairs[i].answered, 4, answered_ + 4 * (first + count - 1 - i));
      }
      run<PanelKeys>(transposed_, pairs, count);
    });
    errors.copy_out(G.data(), G.colStride(), fades.past());
  }

  template <class Matrix> void onwards(const Matrix& W) {
    transposed_.copy_in_transposed(W.data(), W.colStride());
    Fades fades(tokens_, dk_);
    const auto prepare = [&](Pair& p, Index at, Index i) {
      list_prefetches(p.prefetches, at + 2 * most, [&](const auto& token) {
        p.prefetches.rows.add(token.dy, token.u, token.c);
        p.prefetches.columns.add(token.k, token.q, token.dk, token.dq);
      });
      fades.spread(p, at);
      std::copy_n(answered_ + 2 * at, 4, p.answered);
      carry_on(p, i);
    };
    for_pairs<most>(tokens_, steps_, false, prepare, [&](Pair* pairs, Index count, Index) {
      run<PanelQueries>(transposed_, pairs, count);
    });
  }

 private:
  struct Errors;
  struct Transposed;
  struct Answered;
  using Pair = BackwardPair<S>;
  using Fades = PairFades<S, decay_kind>;
  static constexpr Index most = Fades::most;  // pairs at a time
  // Columns that fade by themselves take a register more for every packet.
  static constexpr int packets = tall_panel(HasDeltaTerm && decay_kind != DecayKind::per_key);

  // Four updates for two products: here loads and stores count, and tall panels are to stay in the
  // first-level cache beside what goes by.
  static bool is_low(Index columns) {
    constexpr Index buffer = 16384 / sizeof(S);
    return packets * lanes<S> * columns > buffer;
  }

  // add(token) for the tokens of the pair at `at`, if there is one.
  template <class F> void list_prefetches(Prefetches<S>& prefetches, Index at, const F& add) const {
    prefetches.rows.clear();
    prefetches.columns.clear();
    if (!worth_prefetching<S>(dk_)) return;
    for (Index t = std::max<Index>(at, 0); t < std::min(at + 2, steps_); ++t) add(tokens_.token(t));
  }
  template <template <class, int, bool, DecayKind> class Visit, class Use>
  static void run(const Panels<S, Use, packets>& panels, const Pair* pairs, Index count) {
    panels.each([&](auto height, const auto& p) {
      run_pairs<Visit, S, height, HasDeltaTerm, decay_kind>(p, panels.columns(), pairs, count);
    });
  }

  // What products with the vectors that a pair leaves behind make of the next one's.
  static void carry(const S* a1, const S* a2, const S* b1, const S* b2, Index n, S* carried) {
    dot_products({a1, a1, a2, a2}, {b1, b2, b1, b2}, n, carried);
  }
  void carry_back(Pair& p, Index i) const {
    if (!two_at_a_time<HasDeltaTerm, decay_kind> || i % 2 == 0) return;
    const Pair& before = *(&p - 1);
    carry(p.one.k, p.two.k, before.one.q, before.two.q, dk_, p.carried_keys);
    carry(p.one.u, p.two.u, before.one.dy, before.two.dy, dv_, p.carried_answers);
  }
  void carry_on(Pair& p, Index i) const {
    if (!two_at_a_time<HasDeltaTerm, decay_kind> || i % 2 == 0) return;
    const Pair& before = *(&p - 1);
    carry(p.one.dy, p.two.dy, before.one.u, before.two.u, dv_, p.carried_answers);
  }

  const BackwardTokens<S>& tokens_;
  Index steps_, dv_, dk_;
  S* answered_;
  Panels<S, Transposed, packets> transposed_;
};

/// From G of the final state to that of the first, in place, and to those of the tokens. `W` is the
/// first state, and has faded for the first token already: Ḡ of that is what G becomes.
template <bool HasDeltaTerm, DecayKind decay_kind, class Matrix, class S>
void backward_pairs(const Matrix& W, Matrix& G, const BackwardTokens<S>& tokens, Index steps) {
  BackwardPasses<HasDeltaTerm, decay_kind, S> passes(tokens, steps, W.rows(), W.cols());
  passes.back(G);
  passes.onwards(W);
}

}  // namespace FASTWEIGHTS_KERNELS
}  // namespace fw::detail
