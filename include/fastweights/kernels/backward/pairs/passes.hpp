#pragma once

#include <fastweights/kernels/backward/pairs/panels.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// Computes e·dy and e·du of a pair for the other passes, and adds du·e to dβ.
template <bool HasLookups, class S> void set_error_products(BackwardPair<S>& p, Index dv) {
  const auto &one = p.one, &two = p.two;
  if constexpr (HasLookups) {
    S sums[6];
    dot_products({one.e, one.e, two.e, one.e, one.e, two.e},
                 {one.dy, two.dy, two.dy, two.du, one.du, two.du}, dv, sums);
    std::copy_n(sums, 4, p.error_products);
    *one.dbeta += sums[4];
    if (!p.single) *two.dbeta += sums[5];
  } else {
    dot_products({one.e, one.e, two.e}, {one.dy, two.dy, two.dy}, dv, p.error_products);
    p.error_products[3] = S(0);
  }
}

/// The passes pair by pair. The second backward pass adds Gᵀ e to dk with a transposed G, so that
/// its products run along SIMD lanes as well. It follows the first batch by batch. The passes keep
/// decaying matrices as the scan does (DeferredDecay). Call `run_backward` before `run_forward`.
template <bool HasLookups, DecayKind decay_kind, class S> class PairPasses {
 public:
  PairPasses(const BackwardTokens<S>& tokens, Index steps, Index dv, Index dk)
      : tokens_(tokens),
        steps_(steps),
        dv_(dv),
        dk_(dk),
        error_products_(thread_buffer<S, ErrorProducts>(4 * ((steps + 1) / 2))),
        transposed_(dk, dv, is_low(dv)) {}

  template <class Matrix> void run_backward(Matrix& G) {
    Panels<S, Gradient, packets> gradient(dv_, dk_, is_low(dk_));
    Decays decays(tokens_, dk_);
    const S factor = S(1) / decays.divisor();
    gradient.copy_in(G.data(), G.colStride(), factor);
    transposed_.copy_in_transposed(G.data(), G.colStride(), factor);
    const auto prepare = [&](Pair& p, Index at, Index i) {
      list_prefetches(p.prefetches, at - 2 * batch, [&](const auto& token) {
        p.prefetches.rows.add(token.dy, token.e, token.du, token.dv);
        p.prefetches.columns.add(token.k, token.q, token.dk);
      });
      decays.set_decays(p, at);
      decays.decay_vectors(p, i);
      const auto &one = p.one, &two = p.two;
      dot_products({p.lookup_key, one.k, p.lookup_key, two.k}, {two.k, one.q, two.q, two.q}, dk_,
                   p.key_products);
      set_backward_products(p, i);
    };
    for_pairs<batch>(tokens_, steps_, true, prepare, [&](Pair* pairs, Index count, Index first) {
      run<PanelUpdateGradients>(gradient, pairs, count);
      for (Index i = 0; i < count; ++i) {
        set_error_products<HasLookups>(pairs[i], dv_);
        std::copy_n(pairs[i].error_products, 4, error_products_ + 4 * (first + count - 1 - i));
      }
      run<PanelKeys>(transposed_, pairs, count);
    });
    gradient.copy_out(G.data(), G.colStride(), decays.divisor());
  }

  template <class Matrix> void run_forward(const Matrix& W) {
    Decays decays(tokens_, dk_);
    transposed_.copy_in_transposed(W.data(), W.colStride(), S(1) / decays.divisor());
    const auto prepare = [&](Pair& p, Index at, Index i) {
      list_prefetches(p.prefetches, at + 2 * batch, [&](const auto& token) {
        p.prefetches.rows.add(token.dy, token.e, token.du);
        p.prefetches.columns.add(token.k, token.q, token.dk, token.dq);
      });
      decays.set_decays(p, at);
      std::copy_n(error_products_ + 2 * at, 4, p.error_products);
      set_forward_products(p, i);
    };
    for_pairs<batch>(tokens_, steps_, false, prepare, [&](Pair* pairs, Index count, Index) {
      run<PanelQueries>(transposed_, pairs, count);
    });
  }

 private:
  struct Gradient;
  struct Transposed;
  struct ErrorProducts;
  using Pair = BackwardPair<S>;
  using Decays = PairDecays<S, decay_kind>;
  static constexpr Index batch = Decays::batch;  // pairs at a time
  // One decay per column needs one more register for every packet.
  static constexpr int packets = tall_panel(HasLookups && decay_kind != DecayKind::per_channel);

  // Four updates for two products make loads and stores expensive, so tall panels must fit in the
  // first-level cache together with the tokens.
  static bool is_low(Index columns) {
    constexpr Index budget = 16384 / sizeof(S);
    return packets * lanes<S> * columns > budget;
  }

  // Calls add(token) for the tokens of the pair at `at`, if it exists.
  template <class F> void list_prefetches(Prefetches<S>& prefetches, Index at, const F& add) const {
    prefetches.rows.clear();
    prefetches.columns.clear();
    if (!worth_prefetching<S>(dk_)) return;
    for (Index t = std::max<Index>(at, 0); t < std::min(at + 2, steps_); ++t) add(tokens_.token(t));
  }
  template <template <class, int, bool, DecayKind> class Visit, class Use>
  static void run(const Panels<S, Use, packets>& panels, const Pair* pairs, Index count) {
    for (const Panel<S>& panel : panels)
      run_pairs<Visit, packets, HasLookups, decay_kind>(panel, panels.columns(), pairs, count);
  }

  // Products of the factors of a pair with the vectors of the previous pair's updates.
  static void set_previous_products(const S* a1, const S* a2, const S* b1, const S* b2, Index n,
                                    S* previous_products) {
    dot_products({a1, a1, a2, a2}, {b1, b2, b1, b2}, n, previous_products);
  }
  void set_backward_products(Pair& p, Index i) const {
    if (!two_pairs_per_pass<HasLookups, decay_kind> || i % 2 == 0) return;
    const Pair& before = *(&p - 1);
    set_previous_products(p.one.k, p.two.k, before.one.q, before.two.q, dk_,
                          p.previous_key_products);
    set_previous_products(p.one.e, p.two.e, before.one.dy, before.two.dy, dv_,
                          p.previous_error_products);
  }
  void set_forward_products(Pair& p, Index i) const {
    if (!two_pairs_per_pass<HasLookups, decay_kind> || i % 2 == 0) return;
    const Pair& before = *(&p - 1);
    set_previous_products(p.one.dy, p.two.dy, before.one.e, before.two.e, dv_,
                          p.previous_error_products);
  }

  const BackwardTokens<S>& tokens_;
  Index steps_, dv_, dk_;
  S* error_products_;
  Panels<S, Transposed, packets> transposed_;
};

}  // namespace fw::detail
