#pragma once

#include <fastweights/kernels/backward/channel_panels.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// Computes e·dy and e·du of a pair for the other passes, and adds du·e to dβ.
template <bool HasDeltaTerm, class S> void set_error_products(BackwardPair<S>& p, Index dv) {
  const auto &one = p.one, &two = p.two;
  if constexpr (HasDeltaTerm) {
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

/// The passes for one decay per column, pair by pair: products of a chunk's tokens would need
/// decays in every column. The second backward pass follows the first batch by batch, with Gᵀ.
/// Call `run_backward` before `run_forward`.
template <bool HasDeltaTerm, class S> class ChannelPasses {
 public:
  ChannelPasses(const BackwardTokens<S>& tokens, Index steps, Index dv, Index dk)
      : tokens_(tokens),
        steps_(steps),
        dv_(dv),
        dk_(dk),
        pairs_(tokens, steps, dk),
        error_products_(thread_buffer<S, ErrorProducts>(4 * ((steps + 1) / 2))),
        transposed_(dk, dv) {}

  template <class Matrix> void run_backward(Matrix& G) {
    Panels<S, Gradient, packets> gradient(dv_, dk_);
    gradient.copy_in(G.data(), G.colStride());
    transposed_.copy_in_transposed(G.data(), G.colStride());
    const auto prepare = [&](Pair& p, Index at, Index i) {
      list_prefetches(p.prefetches, at - 2 * batch);
      pairs_.set_decayed_vectors(p, i);
      dot_products({p.lookup_key, p.one.k, p.lookup_key, p.two.k},
                   {p.two.k, p.one.q, p.two.q, p.two.q}, dk_, p.key_products);
    };
    pairs_.for_batches(true, prepare, [&](Pair* pairs, Index count, Index first) {
      run<PanelUpdateGradients>(gradient, pairs, count);
      for (Index i = 0; i < count; ++i) {
        set_error_products<HasDeltaTerm>(pairs[i], dv_);
        std::copy_n(pairs[i].error_products, 4, error_products_ + 4 * (first + count - 1 - i));
      }
      run<PanelKeys>(transposed_, pairs, count);
    });
    gradient.copy_out(G.data(), G.colStride());
  }

  template <class Matrix> void run_forward(const Matrix& W) {
    transposed_.copy_in_transposed(W.data(), W.colStride());
    const auto prepare = [&](Pair& p, Index at, Index) {
      list_prefetches(p.prefetches, at + 2 * batch);
      std::copy_n(error_products_ + 2 * at, 4, p.error_products);
    };
    pairs_.for_batches(false, prepare, [&](Pair* pairs, Index count, Index) {
      run<PanelQueries>(transposed_, pairs, count);
    });
  }

 private:
  struct Gradient;
  struct Transposed;
  struct ErrorProducts;
  using Pair = BackwardPair<S>;
  static constexpr Index batch = BackwardPairs<S>::batch;
  static constexpr int packets = 2;  // the decays need registers, too

  // Lists the vectors of the pair at `at`, if it exists.
  void list_prefetches(Prefetches<S>& prefetches, Index at) const {
    prefetches.rows.clear();
    prefetches.columns.clear();
    if (!worth_prefetching<S>(dk_)) return;
    for (Index t = std::max<Index>(at, 0); t < std::min(at + 2, steps_); ++t) {
      prefetches.rows.add(tokens_.dy(t), tokens_.e(t), tokens_.du(t), tokens_.dv(t));
      prefetches.columns.add(tokens_.k(t), tokens_.q(t), tokens_.dk(t), tokens_.dq(t));
    }
  }
  template <template <class, int, bool> class Pass, class Use>
  static void run(const Panels<S, Use, packets>& panels, const Pair* pairs, Index count) {
    const auto loop = [&]<int R>(const Panel<S>& panel, std::integral_constant<int, R>) {
      PairLoop<Pass<S, R, HasDeltaTerm>, S, R, HasDeltaTerm, DecayKind::per_channel>::run(
          panel, panels.columns(), pairs, count);
    };
    for (const Panel<S>& panel : panels) {
      if (panel.packets == 1)
        loop(panel, std::integral_constant<int, 1>());
      else
        loop(panel, std::integral_constant<int, 2>());
    }
  }

  const BackwardTokens<S>& tokens_;
  Index steps_, dv_, dk_;
  BackwardPairs<S> pairs_;
  S* error_products_;
  Panels<S, Transposed, packets> transposed_;
};

}  // namespace fw::detail
