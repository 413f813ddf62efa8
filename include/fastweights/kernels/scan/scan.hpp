#pragma once

#include <fastweights/kernels/scan/scan_panel.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// Makes pairs of tokens. With one decay per token, the stored matrix is W divided by `divisor()`.
template <class S, DecayKind decay_kind, bool HasDeltaTerm> class Pairs {
 public:
  static constexpr Index batch = decay_kind == DecayKind::per_channel ? 8 : 32;

  Pairs(const Tokens<S>& tokens, Index columns) : tokens_(tokens), columns_(columns) {
    if constexpr (decay_kind == DecayKind::per_channel)
      buffer_ = thread_buffer<S, Pairs>(batch * vectors * columns);
  }

  /// Makes pairs of the tokens from `t` up to `end`, and returns their number. Calls `coefficients`
  /// once per token, in order.
  template <class Coefficients> Index make(Index t, Index end, const Coefficients& coefficients) {
    Index count = 0;
    for (; t < end && count < batch; t += 2, ++count) {
      if (worth_prefetching<S>(columns_))
        list_prefetches(pairs_[count].prefetches, t + 2 * batch, end);
      const bool single = t + 1 == end;
      const Index next = single ? t : t + 1;
      const TokenCoefficients<S> one = coefficients(t);  // may depend on the calls before
      const TokenCoefficients<S> two = single ? no_token : coefficients(next);
      set_pair(pairs_[count], t, next, one, two, count);
      if (single) remove_second_token(pairs_[count]);
      if constexpr (two_pairs_per_pass<HasDeltaTerm, decay_kind>)
        if (count % 2 == 1) set_previous_products(pairs_[count - 1], pairs_[count]);
    }
    return count;
  }
  const Pair<S>* data() const { return pairs_; }
  /// W is the stored matrix times this.
  S divisor() const { return decay_kind == DecayKind::scalar ? deferred_.divisor() : S(1); }

 private:
  static constexpr Index vectors = 6;

  void set_previous_products(const Pair<S>& before, Pair<S>& p) const {
    const S *k1 = before.one.key, *k2 = before.two.key;
    dot_products({k1, k2, k1, k2}, {p.one.query, p.one.query, p.two.query, p.two.query}, columns_,
                 p.previous_products);
  }

  void list_prefetches(Prefetches<S>& prefetches, Index t, Index end) const {
    prefetches.rows.clear();
    prefetches.columns.clear();
    for (const Index last = std::min(t + 2, end); t < last; ++t) {
      prefetches.rows.add(tokens_.value(t), tokens_.output(t), tokens_.beta(t), tokens_.errors(t));
      prefetches.columns.add(tokens_.key(t), tokens_.query(t), tokens_.decays(t));
    }
  }

  // A pair of one token: its second token neither writes nor reads.
  static constexpr TokenCoefficients<S> no_token{S(0), S(0), S(1), S(0), S(1)};
  static void remove_second_token(Pair<S>& p) {
    p.two.output = nullptr;
    p.two.betas = nullptr;
    p.two.error = nullptr;
  }

  EIGEN_ALWAYS_INLINE void set_pair(Pair<S>& p, Index t1, Index t2, const TokenCoefficients<S>& a,
                                    const TokenCoefficients<S>& b, [[maybe_unused]] Index i) {
    const S *k1 = tokens_.key(t1), *k2 = tokens_.key(t2);
    const S *q1 = tokens_.query(t1), *q2 = tokens_.query(t2);
    const auto pointers = [&](Index t, const S* k, const S* q) {
      return typename Pair<S>::One{
          k, q, k, tokens_.value(t), tokens_.beta(t), tokens_.output(t), tokens_.errors(t)};
    };
    p.one = pointers(t1, k1, q1);
    p.two = pointers(t2, k2, q2);
    if constexpr (decay_kind == DecayKind::per_channel)
      decay_vectors(p, tokens_.decays(t1), t1 == t2 ? nullptr : tokens_.decays(t2), i);
    S key_products[4] = {};  // k_1·k_2 (delta term only), k_1·q_1, k_1·q_2, k_2·q_2
    if constexpr (HasDeltaTerm)
      dot_products({p.one.key, k1, p.one.key, k2}, {k2, q1, q2, q2}, columns_, key_products);
    else
      dot_products({k1, p.one.key, k2}, {q1, q2, q2}, columns_, key_products + 1);
    // The factors from the stored matrix to W̄ of the first and of the second token.
    const S first = divisor() * a.decay, second = first * b.decay;
    p.key_key = b.retrieved_scale * b.decay * key_products[0];
    p.cross_key_query = b.read_scale * b.decay * key_products[2];
    set_coefficients(p.one, a, first, key_products[1]);
    set_coefficients(p.two, b, second, key_products[3]);
    set_decay(p, a.decay, b.decay);
  }

  static void set_coefficients(typename Pair<S>::One& one, const TokenCoefficients<S>& c,
                               S total_decay, S key_query) {
    one.value_scale = c.value_scale;
    one.beta = c.beta;
    one.retrieved_scale = c.retrieved_scale * total_decay;
    one.read_scale = c.read_scale * total_decay;
    one.key_query = c.read_scale * key_query;
  }

  void set_decay(Pair<S>& p, S first, S second) {
    p.decay = S(1);
    if constexpr (decay_kind == DecayKind::scalar) p.decay = deferred_.decay(first * second);
    p.one.write_scale = second / divisor();
    p.two.write_scale = S(1) / divisor();
  }

  // Multiplies keys and queries by the decays of the columns. `second` is null if there is no
  // second token.
  void decay_vectors(Pair<S>& p, const S* first, const S* second, Index i) {
    const auto decayed = [&](Index which, const S* by, const S* x) -> const S* {
      using Vector = Eigen::Map<Eigen::Array<S, Eigen::Dynamic, 1>>;
      using Given = Eigen::Map<const Eigen::Array<S, Eigen::Dynamic, 1>>;
      Vector to(buffer_ + (i * vectors + which) * columns_, columns_);
      if (by == nullptr)
        to = Given(x, columns_);
      else
        to = Given(by, columns_) * Given(x, columns_);
      return to.data();
    };
    p.decays = decayed(0, second, first);
    p.one.lookup_key = decayed(1, first, p.one.lookup_key);
    p.one.query = decayed(2, first, p.one.query);
    p.two.lookup_key = decayed(3, p.decays, p.two.lookup_key);
    p.two.query = decayed(4, p.decays, p.two.query);
    p.one.key = decayed(5, second, p.one.key);
  }

  const Tokens<S>& tokens_;
  Index columns_;
  DeferredDecay<S> deferred_;
  S* buffer_ = nullptr;
  Pair<S> pairs_[batch];
};

/// Scans `steps` tokens. W is d_v×d_k with contiguous columns, and so are its rounding errors,
/// which only DecayKind::compensated has.
template <DecayKind decay_kind, bool HasDeltaTerm, class Matrix, class S, class Coefficients>
void scan_pairs(Matrix& W, S* errors, const Tokens<S>& tokens, Index steps,
                const Coefficients& coefficients) {
  struct Use;
  constexpr int tallest = tall_panel(HasDeltaTerm);
  constexpr bool compensated = decay_kind == DecayKind::compensated;
  Panels<S, Use, tallest, compensated ? 2 : 1> panels(W.rows(), W.cols());
  Pairs<S, decay_kind, HasDeltaTerm> pairs(tokens, W.cols());
  panels.copy_in(W.data(), W.colStride(), S(1) / pairs.divisor());
  if (compensated) panels.copy_in(errors, W.colStride(), S(1), 1);
  for (Index t = 0; t < steps;) {
    const Index count = pairs.make(t, steps, coefficients);
    for (const Panel<S>& panel : panels)
      run_pairs<PanelScan, tallest, HasDeltaTerm, decay_kind>(panel, W.cols(), pairs.data(), count);
    t += 2 * count;
  }
  panels.copy_out(W.data(), W.colStride(), pairs.divisor());
  if (compensated) panels.copy_out(errors, W.colStride(), S(1), 1);
}

#define FASTWEIGHTS_SCAN_PANEL(keyword, S, R, HasDeltaTerm, decay_kind)                         \
  keyword template void PairLoop<PanelScan<S, R, HasDeltaTerm, decay_kind>, S, R, HasDeltaTerm, \
                                 decay_kind>::run(const Panel<S>&, Index, const Pair<S>*, Index)
/// Explicit instances, or with `extern` their declarations, of panels with one or two packets. The
/// TALL macro has those with four.
#define FASTWEIGHTS_SCAN_PANELS(keyword, S, decay_kind)     \
  FASTWEIGHTS_SCAN_PANEL(keyword, S, 1, false, decay_kind); \
  FASTWEIGHTS_SCAN_PANEL(keyword, S, 2, false, decay_kind); \
  FASTWEIGHTS_SCAN_PANEL(keyword, S, 1, true, decay_kind);  \
  FASTWEIGHTS_SCAN_PANEL(keyword, S, 2, true, decay_kind)
#define FASTWEIGHTS_SCAN_KERNELS(keyword, S)                   \
  FASTWEIGHTS_SCAN_PANELS(keyword, S, DecayKind::none);        \
  FASTWEIGHTS_SCAN_PANELS(keyword, S, DecayKind::scalar);      \
  FASTWEIGHTS_SCAN_PANELS(keyword, S, DecayKind::compensated); \
  FASTWEIGHTS_SCAN_PANELS(keyword, S, DecayKind::per_channel)
#define FASTWEIGHTS_TALL_SCAN_KERNELS(keyword, S)                      \
  FASTWEIGHTS_SCAN_PANEL(keyword, S, 4, true, DecayKind::none);        \
  FASTWEIGHTS_SCAN_PANEL(keyword, S, 4, true, DecayKind::scalar);      \
  FASTWEIGHTS_SCAN_PANEL(keyword, S, 4, true, DecayKind::compensated); \
  FASTWEIGHTS_SCAN_PANEL(keyword, S, 4, true, DecayKind::per_channel)

#ifdef FASTWEIGHTS_COMPILED
FASTWEIGHTS_SCAN_KERNELS(extern, float);
FASTWEIGHTS_SCAN_KERNELS(extern, double);
FASTWEIGHTS_TALL_SCAN_KERNELS(extern, float);
FASTWEIGHTS_TALL_SCAN_KERNELS(extern, double);
#endif

}  // namespace fw::detail
