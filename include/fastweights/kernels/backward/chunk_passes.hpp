#pragma once

#include <fastweights/kernels/backward/chunk_panels.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// The passes for no decay or one decay per token, chunk by chunk. Call `run_backward` before
/// `run_forward`.
template <bool HasDeltaTerm, class S> class ChunkPasses {
 public:
  ChunkPasses(const BackwardTokens<S>& tokens, Index steps, Index dv, Index dk)
      : tokens_(tokens),
        steps_(steps),
        dv_(dv),
        dk_(dk),
        error_products_(thread_buffer<S, ErrorProducts>((steps + chunk) / chunk * 2 * square)) {
    const Index vector = chunk * std::max(dk, dv), panel = chunk * packets * lanes<S>;
    S* buffer = thread_buffer<S, ChunkPasses>(6 * vector + 2 * panel);
    for (S** each : {&buffers_.keys, &buffers_.queries, &buffers_.errors, &buffers_.dy,
                     &buffers_.du, &buffers_.dk}) {
      *each = buffer;
      buffer += vector;
    }
    buffers_.panel_one = buffer;
    buffers_.panel_two = buffer + panel;
  }

  template <class Matrix> void run_backward(Matrix& G) {
    Panels<S, Gradient, packets> gradient(dv_, dk_, is_low(dk_));
    gradient.copy_in(G.data(), G.colStride());
    for (Index end = steps_; end > 0;) {
      const Index t = (end - 1) / chunk * chunk;
      Chunk<S> c(tokens_, t, end, buffers_);
      const auto next = prefetch(c, t - chunk, gradient, 2 + dk_ / 8 + dk_ / 4);
      c.prefetch.add(next.q, dk_);
      c.prefetch.add(next.dv, dv_);
      prepare_backward(c);
      run<ChunkGradients>(gradient, c);
      add_key_gradients(c, error_products_ + t / chunk * 2 * square);
      end = t;
    }
    gradient.copy_out(G.data(), G.colStride());
  }

  template <class Matrix> void run_forward(const Matrix& W) {
    Panels<S, Transposed, packets> transposed(dk_, dv_, is_low(dv_));
    transposed.copy_in_transposed(W.data(), W.colStride());
    for (Index t = 0; t < steps_; t += chunk) {
      Chunk<S> c(tokens_, t, steps_, buffers_);
      const auto next = prefetch(c, t + chunk, transposed, 4 + dv_ / 4);
      c.prefetch.add(next.dq, dk_);
      if (tokens_.decay_terms.data != nullptr) c.prefetch.add(next.q, dk_);
      transpose_tokens(buffers_.dy, c.tokens.dy, dv_, c.count);
      transpose_tokens(buffers_.errors, c.tokens.e, dv_, c.count);
      if constexpr (HasDeltaTerm) transpose_tokens<S>(buffers_.du, c.tokens.du, dv_, c.count);
      const S* const products = error_products_ + t / chunk * 2 * square;
      std::copy_n(products, square, buffers_.error_dys);
      std::copy_n(products + square, square, buffers_.error_dus);
      run<ChunkQueries>(transposed, c);
    }
  }

 private:
  struct Gradient;
  struct Transposed;
  struct ErrorProducts;
  static constexpr Index square = chunk * chunk;
  static constexpr int packets = tall_panel(true);

  // Tall panels need fewer instructions per multiply-add, but larger ones leave the caches.
  static bool is_low(Index columns) {
    constexpr Index budget = 32768 / sizeof(S);
    return packets * lanes<S> * columns > budget;
  }

  // Prefetches what both passes need of the chunk at t, with `calls` calls per panel, and
  // returns it. Null if there is no such chunk.
  template <class Matrix>
  BackwardTokens<S> prefetch(Chunk<S>& c, Index t, const Matrix& matrix, Index calls) const {
    if (t < 0 || t >= steps_) return {};
    Index panels = 0;
    for ([[maybe_unused]] const Panel<S>& panel : matrix) ++panels;
    c.prefetch.start(std::min(chunk, steps_ - t), panels * calls);
    const BackwardTokens<S> next = tokens_.from(t);
    for (const Columns<const S>& x : {next.k, Columns<const S>(next.dk)}) c.prefetch.add(x, dk_);
    for (const Columns<const S>& x : {next.dy, next.e, Columns<const S>(next.du)})
      c.prefetch.add(x, dv_);
    return next;
  }

  template <template <class, int, bool> class Pass, class Matrix>
  static void run(const Matrix& matrix, Chunk<S>& c) {
    for (const Panel<S>& panel : matrix) {
      if (panel.packets == 1)
        Pass<S, 1, HasDeltaTerm>::run(panel, matrix.columns(), c);
      else if (panel.packets == 2)
        Pass<S, 2, HasDeltaTerm>::run(panel, matrix.columns(), c);
      else
        Pass<S, packets, HasDeltaTerm>::run(panel, matrix.columns(), c);
    }
  }

  void prepare_backward(const Chunk<S>& c) {
    transpose_tokens(buffers_.keys, c.tokens.k, dk_, c.count);
    transpose_tokens(buffers_.queries, c.tokens.q, dk_, c.count);
    transpose_tokens(buffers_.errors, c.tokens.e, dv_, c.count);
    set_key_products(buffers_.queries, buffers_.key_queries);
    c.weigh(buffers_.key_queries, true, buffers_.key_queries);
    if constexpr (HasDeltaTerm) {
      set_key_products(buffers_.keys, buffers_.key_keys);
      c.weigh(buffers_.key_keys, false, buffers_.key_keys);
      scale_by_betas(c, buffers_.key_keys);
    }
    std::fill_n(buffers_.error_dys, square, S(0));
    std::fill_n(buffers_.error_dus, square, S(0));
    std::fill_n(buffers_.dk, chunk * dk_, S(0));
  }
  void set_key_products(const S* x, S* products) const {
    for_columns<8>(chunk, [&](Index s, auto N) {
      Group<OfTokens<S>, N()> sums;
      set_zero<S>(sums);
      add_product(sums, LeftFactor<S>{buffers_.keys, chunk}, RightFactor<S>{x + s, chunk, 1}, dk_);
      store(sums, products + s * chunk, chunk);
    });
  }
  // Multiplies the weights of token s by −β_s.
  static void scale_by_betas(const Chunk<S>& c, S* weights) {
    for (Index s = 0; s < chunk; ++s)
      for (Index t = 0; t < chunk; ++t) weights[t + chunk * s] *= -c.betas[s];
  }

  // Adds to dβ and dk, and keeps the weighted products of errors for the forward pass.
  void add_key_gradients(const Chunk<S>& c, S* weights) {
    c.weigh(buffers_.error_dys, true, weights);
    if constexpr (HasDeltaTerm) {
      for (Index s = 0; s < c.count; ++s) *c.tokens.dbeta(s) += buffers_.error_dus[s + chunk * s];
      c.weigh(buffers_.error_dus, false, weights + square);
      std::copy_n(weights + square, square, buffers_.error_dus);
      scale_by_betas(c, buffers_.error_dus);
    }
    const auto decays = OfTokens<S>::load(c.until_last()), betas = OfTokens<S>::load(c.betas);
    auto terms = OfTokens<S>::all(S(0));
    for_columns<8>(dk_, [&](Index j, auto N) {
      Group<OfTokens<S>, N()> dk;
      load(dk, buffers_.dk + j * chunk, chunk);
      for_parts(dk, [&](OfTokens<S>& one, Index) { one.scale(decays); });
      add_updates(dk, weights, buffers_.queries + j * chunk, c.count);
      if constexpr (HasDeltaTerm)
        add_updates(dk, buffers_.error_dus, buffers_.keys + j * chunk, c.count);
      for_parts(dk, [&](OfTokens<S>& one, Index i) {
        one.scale(betas);
        terms.add(one, OfTokens<S>::load(buffers_.keys + (j + i) * chunk));
      });
      store(dk, buffers_.dk + j * chunk, chunk);
    });
    add_to_tokens(c.tokens.dk, buffers_.dk, dk_, c.count);
    if (c.tokens.decay_terms.data == nullptr) return;
    S all[chunk];
    terms.store(all);
    for (Index s = 0; s < c.count; ++s) *c.tokens.decay_terms(s) = -all[s];
  }
  template <int N>
  static EIGEN_ALWAYS_INLINE void add_updates(Group<OfTokens<S>, N>& dk, const S* weights,
                                              const S* x, Index count) {
    add_product(dk, LeftFactor<S>{weights, chunk}, RightFactor<S>{x, 1, chunk}, count);
  }

  const BackwardTokens<S>& tokens_;
  Index steps_, dv_, dk_;
  S* error_products_;  // of every chunk, for the forward pass
  ChunkBuffers<S> buffers_;
};

}  // namespace fw::detail
