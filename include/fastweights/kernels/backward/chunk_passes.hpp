#pragma once

#include <fastweights/kernels/backward/chunk_keys.hpp>
#include <fastweights/kernels/backward/chunk_panels.hpp>
#include <new>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// The passes over a stretch of a rule's tokens, chunk by chunk. Call `run_backward` before
/// `run_forward`. `Rule` is RuleGradients.
template <bool HasLookups, DecayKind decay_kind, class Rule> class ChunkPasses {
 public:
  using S = typename Rule::Scalar;

  /// `tokens` tokens from `first` on. The first one has decayed already.
  ChunkPasses(Rule& rule, ChunkBuffers<S>& buffers, Index first, Index tokens, Index dv, Index dk)
      : rule_(rule),
        first_(first * layout.per_token),
        end_(first_ + tokens * layout.per_token),
        dv_(dv),
        dk_(dk),
        error_products_(thread_buffer<S, Stored>(((end_ - first_) / per_chunk + 1) * 2 * square)),
        b_(buffers),
        keys_(dk) {}

  template <class Matrix> void run_backward(Matrix& G) {
    Panels<S, Gradient, packets> gradient(dv_, dk_, is_low(dk_));
    gradient.copy_in(G.data(), G.colStride());
    for (Index end = end_; end > first_;) {
      const Index i = first_ + (end - first_ - 1) / per_chunk * per_chunk;
      Chunk<S> c(layout, std::min(per_chunk, end - i), has_decay && i == first_, b_);
      set_corrections(c, i);
      prefetch(c, i - per_chunk, true, gradient, 2 + dk_ / 8 + dk_ / 4);
      set_values(c, i);
      keys_.set(c);
      std::fill_n(b_.dkey_lanes, chunk_size * ChunkRows<S>::padded(dk_), S(0));
      run<ChunkGradients>(gradient, c);
      set_error_products(c, i);
      keys_.set_gradients(c, error_products(i));
      add_key_gradients(c, i);
      end = i;
    }
    gradient.copy_out(G.data(), G.colStride());
  }

  template <class Matrix> void run_forward(const Matrix& W) {
    Panels<S, Transposed, packets> transposed(dk_, dv_, is_low(dv_));
    transposed.copy_in_transposed(W.data(), W.colStride());
    for (Index i = first_; i < end_; i += per_chunk) {
      Chunk<S> c(layout, std::min(per_chunk, end_ - i), has_decay && i == first_, b_);
      set_corrections(c, i);
      prefetch(c, i + per_chunk, false, transposed, 4 + dv_ / 4);
      set_values(c, i);
      transpose_to_lanes<S>(c.dy, b_.dy_lanes);
      if constexpr (HasLookups) {
        const auto removal = [&](Index j) { return rule_.removal(i + layout.lookup(j)); };
        transpose_to_lanes({c.lookups, b_.zeros, dv_, removal}, b_.removal_lanes);
      }
      keys_.set_rows(c, error_products(i));
      run<ChunkQueries>(transposed, c);
      if constexpr (per_channel) keys_.decay_read_gradients(c);
      add_read_gradients(c, i);
    }
  }

 private:
  struct Gradient;
  struct Transposed;
  struct Stored;
  static constexpr CorrectionLayout layout = Rule::layout;
  static constexpr bool has_decay = decay_kind != DecayKind::none;
  static constexpr bool per_channel = decay_kind == DecayKind::per_channel;
  static constexpr Index per_chunk = layout.per_chunk(), square = chunk_size * chunk_size;
  static constexpr int packets = tall_panel(true);
  static_assert(per_chunk > 0, "fastweights: a token has at most 8 corrections");

  // Tall panels need fewer instructions per multiply-add, but larger ones leave the caches.
  static bool is_low(Index columns) {
    constexpr Index budget = 32768 / sizeof(S);
    return packets * lanes<S> * columns > budget;
  }

  void set_corrections(Chunk<S>& c, Index i) {
    // Constructed in place: copies would wait for stores of single members.
    for (Index s = 0; s < c.count; ++s) new (&c.corrections[s]) Correction<S>(rule_.get(i + s, s));
    c.set_removal_scales();
    c.factors = &factors_;
    if constexpr (decay_kind == DecayKind::scalar)
      factors_.template set<layout>(c.count, c.is_first, [&](Index t) {
        return c.corrections[t * layout.per_token].coefficients.decay;
      });
    else
      c.factors = &ChunkFactors<S>::template ones<layout>(c.is_first);
  }
  ErrorProducts<S> error_products(Index i) const {
    return {error_products_ + (i - first_) / per_chunk * 2 * square};
  }

  // Prefetches what both passes need of the chunk at i, with `calls` calls per panel.
  template <class Matrix>
  void prefetch(Chunk<S>& c, Index i, bool backward, const Matrix& matrix, Index calls) const {
    if (i < first_ || i >= end_) return;
    Index panels = 0;
    for ([[maybe_unused]] const Panel<S>& panel : matrix) ++panels;
    c.prefetch.start(panels * calls);
    rule_.list_prefetches(c.prefetch, i, std::min(per_chunk, end_ - i), backward);
  }

  template <template <class, int, bool> class Pass, class Matrix>
  static void run(const Matrix& matrix, Chunk<S>& c) {
    for (const Panel<S>& panel : matrix) {
      if (panel.packets == 1)
        Pass<S, 1, HasLookups>::run(panel, matrix.columns(), c);
      else if (panel.packets == 2)
        Pass<S, 2, HasLookups>::run(panel, matrix.columns(), c);
      else
        Pass<S, packets, HasLookups>::run(panel, matrix.columns(), c);
    }
  }

  // Updates in lanes, and gradients of the outputs.
  void set_values(Chunk<S>& c, Index i) const {
    S scales[chunk_size] = {};
    for (Index s = 0; s < c.count; ++s)
      scales[s] = error_scale(c, s) * c.corrections[s].coefficients.beta;
    const auto vector = [&](Index s) {
      const Correction<S>& one = c.corrections[s];
      if (one.betas == nullptr) return error(c, i, s);
      b_.updates.set_product(s, error(c, i, s), one.betas);
      scales[s] = error_scale(c, s);
      return static_cast<const S*>(b_.updates[s]);
    };
    transpose_to_lanes({c.count, b_.zeros, dv_, vector}, b_.update_lanes, scales);
    if constexpr (decay_kind == DecayKind::scalar) {
      scale_lanes(b_.update_lanes, c.factors->until_end, dv_, b_.decayed_update_lanes);
      c.update_lanes = b_.decayed_update_lanes;
    }
    set_output_gradients(c, i);
  }
  void set_output_gradients(Chunk<S>& c, Index i) const {
    const auto gradient = [&](Index r) { return rule_.output_gradient(token(i + layout.read(r))); };
    const auto scale = [&](Index r) {
      return c.corrections[layout.read(r)].coefficients.read_scale;
    };
    bool plain = true;
    for (Index r = 0; r < c.reads; ++r) plain = plain && scale(r) == S(1);
    if (plain) {
      c.dy = b_.dy.template view<layout.reads_per_chunk()>(c.reads, gradient);
    } else {
      for (Index r = 0; r < c.reads; ++r) b_.dy.set(r, gradient(r), scale(r));
      c.dy = b_.dy;
    }
  }
  // to_s = factor β ∘ x
  void set_scaled(const ChunkRows<S>& to, Index s, const S* x, const Correction<S>& one,
                  S factor) const {
    if (one.betas == nullptr)
      to.set(s, x, factor * one.coefficients.beta);
    else
      to.set_product(s, x, one.betas, factor);
  }
  // The error of correction s is error_scale times this.
  const S* error(const Chunk<S>& c, Index i, Index s) const {
    if constexpr (HasLookups)
      if (layout.looks_up(s)) return rule_.error(i + s);
    return c.corrections[s].value;
  }
  S error_scale(const Chunk<S>& c, Index s) const {
    return HasLookups && layout.looks_up(s) ? S(1) : c.corrections[s].coefficients.value_scale;
  }

  // Products of the updates with dy and the removals, for both passes.
  void set_error_products(const Chunk<S>& c, Index first) const {
    const ErrorProducts<S> products = error_products(first);
    ChunkSquare<S> all;
    set_lane_products<S>(b_.update_lanes, c.dy, c.reads, all);
    for (Index r = 0; r < c.reads; ++r)
      multiply_columns(all.column(r), c.factors->reads.column(r), products.with_dy(r));
    if constexpr (HasLookups) {
      set_lane_products<S>(b_.update_lanes, b_.removals, c.lookups, all);
      for (Index l = 0; l < c.lookups; ++l) {
        multiply_columns(all.column(l), c.factors->lookups.column(l), products.with_removal(l));
        std::copy_n(b_.removals[l], dv_, rule_.removal(first + layout.lookup(l)));
      }
    }
  }

  // Of write keys: Gᵀ u. Of a rule with a = b = k, add_read_gradients adds the part W̄ᵀ f of dk.
  void add_key_gradients(const Chunk<S>& c, Index first) {
    for (Index s = 0; s < c.count; ++s) {
      const Correction<S>& one = c.corrections[s];
      if (s % layout.per_token == 0) clear_decay_terms(token(first + s));
      add_decay_terms(token(first + s), one.key, b_.dkeys[s], S(-1));
      set_scaled(b_.updates, s, b_.du[s], one, one.coefficients.value_scale);
      CorrectionGradient<S> g;
      g.key = b_.dkeys[s];
      g.value = b_.updates[s];
      g.update = b_.du[s];
      g.error = error(c, first, s);
      g.error_scale = error_scale(c, s);
      g.rows = dv_;
      rule_.add(first + s, g);
    }
  }

  // Of queries and of look-up keys.
  void add_read_gradients(const Chunk<S>& c, Index first) {
    for (Index s = 0; s < c.count; ++s) {
      const Correction<S>& one = c.corrections[s];
      const Index t = token(first + s);
      CorrectionGradient<S> g;
      if (layout.looks_up(s)) {
        g.lookup = b_.dlookups[layout.lookup_of(s)];
        add_decay_terms(before_decay(s) ? t - 1 : t, one.lookup, g.lookup, S(1));
      }
      if (s % layout.per_token == layout.per_token - 1) {
        const Index r = s / layout.per_token;
        g.query = b_.dqueries[r];
        add_decay_terms(layout.reads_first ? t - 1 : t, one.query, g.query, S(1));
      }
      rule_.add(first + s, g);
    }
  }
  static bool before_decay(Index s) {
    return layout.lookup_before_decay && s % layout.per_token == 0;
  }
  Index token(Index i) const { return i / layout.per_token; }

  // The terms of the decays' gradients between the decay of token t and the next, factor x ∘ dx.
  void clear_decay_terms(Index t) const {
    S* const terms = rule_.decay_terms(t);
    if (terms != nullptr) std::fill_n(terms, per_channel ? dk_ : 1, S(0));
  }
  void add_decay_terms(Index t, const S* x, const S* dx, S factor) const {
    if (token(first_) > t) return;
    S* const terms = rule_.decay_terms(t);
    if (terms == nullptr) return;
    if constexpr (per_channel) {
      for (Index i = 0; i < dk_; ++i) terms[i] += factor * x[i] * dx[i];
    } else {
      S sum;
      dot_products({x}, {dx}, dk_, &sum);
      *terms += factor * sum;
    }
  }

  Rule& rule_;
  Index first_, end_;  // corrections
  Index dv_, dk_;
  S* error_products_;  // of every chunk, for the forward pass
  ChunkBuffers<S>& b_;
  ChunkKeys<layout, decay_kind, S> keys_;
  ChunkFactors<S> factors_{};
};

}  // namespace fw::detail
