#pragma once

#include <fastweights/kernels/scan/scan_panel.hpp>

namespace fw::detail {

inline namespace FASTWEIGHTS_KERNELS {

/// Makes pairs out of tokens. Where all of W fades alike, W is kept as W/past: what fades are a few
/// numbers and not the matrix, until `past` gets so small that the matrix has to be scaled after
/// all.
template <class S, DecayKind decay_kind, bool HasDeltaTerm> class Pairs {
 public:
  static constexpr Index most = decay_kind == DecayKind::per_key ? 8 : 32;  // made at a time

  Pairs(const Tokens<S>& tokens, Index columns) : tokens_(tokens), columns_(columns) {
    if constexpr (decay_kind == DecayKind::per_key)
      buffer_ = thread_buffer<S, Pairs>(most * vectors * columns);
  }

  /// The tokens from `t` on, up to `end`; how many pairs these are. `weights` is called once for
  /// each, in order.
  template <class Weights> Index make(Index t, Index end, const Weights& weights) {
    Index count = 0;
    for (; t < end && count < most; t += 2, ++count) {
      if (worth_prefetching<S>(columns_))
        list_prefetches(pairs_[count].prefetches, t + 2 * most, end);
      const TokenCoefficients<S> one = weights(t);
      if (t + 1 < end)
        pair(pairs_[count], t, t + 1, one, weights(t + 1), count);
      else
        lonely(pairs_[count], t, one, count);
      if constexpr (two_at_a_time<HasDeltaTerm, decay_kind>)
        if (count % 2 == 1) carry(pairs_[count - 1], pairs_[count]);
    }
    return count;
  }
  const Pair<S>* data() const { return pairs_; }
  /// What the matrix is to be multiplied by in the end.
  S past() const { return past_; }

 private:
  static constexpr Index vectors = 6;

  void carry(const Pair<S>& before, Pair<S>& p) const {
    const S *k1 = before.one.key, *k2 = before.two.key;
    dot_products({k1, k2, k1, k2}, {p.one.query, p.one.query, p.two.query, p.two.query}, columns_,
                 p.carried);
  }

  void list_prefetches(Prefetches<S>& prefetches, Index t, Index end) const {
    prefetches.rows.clear();
    prefetches.columns.clear();
    for (const Index last = std::min(t + 2, end); t < last; ++t) {
      prefetches.rows.add(tokens_.value(t), tokens_.output(t), tokens_.beta(t), tokens_.errors(t));
      prefetches.columns.add(tokens_.key(t), tokens_.query(t), tokens_.fades(t));
    }
  }

  // With a second token that neither writes nor reads.
  void lonely(Pair<S>& p, Index t, const TokenCoefficients<S>& one, Index i) {
    pair(p, t, t, one, {S(0), S(0), S(1), S(0), S(1)}, i);
    p.two.output = nullptr;
    p.two.betas = nullptr;
    p.two.error = nullptr;
  }

  void pair(Pair<S>& p, Index t1, Index t2, const TokenCoefficients<S>& a,
            const TokenCoefficients<S>& b, [[maybe_unused]] Index i) {
    const S *k1 = tokens_.key(t1), *k2 = tokens_.key(t2);
    const S *q1 = tokens_.query(t1), *q2 = tokens_.query(t2);
    const auto pointers = [&](Index t, const S* k, const S* q) {
      return typename Pair<S>::One{
          k, q, k, tokens_.value(t), tokens_.beta(t), tokens_.output(t), tokens_.errors(t)};
    };
    p.one = pointers(t1, k1, q1);
    p.two = pointers(t2, k2, q2);
    if constexpr (decay_kind == DecayKind::per_key)
      fade_columns(p, tokens_.fades(t1), t1 == t2 ? nullptr : tokens_.fades(t2), i);
    S key_products[4] = {};  // k_1·k_2 where the rule has a delta term, k_1·q_1, k_1·q_2, k_2·q_2
    if constexpr (HasDeltaTerm)
      dot_products({p.one.key, k1, p.one.key, k2}, {k2, q1, q2, q2}, columns_, key_products);
    else
      dot_products({k1, p.one.key, k2}, {q1, q2, q2}, columns_, key_products + 1);
    const S before = past_ * a.fade, after = before * b.fade;  // the state that each retrieves from
    p.earlier = b.retrieved * b.fade * key_products[0];
    p.cross = b.read * b.fade * key_products[2];
    set_coefficients(p.one, a, before, key_products[1]);
    set_coefficients(p.two, b, after, key_products[3]);
    fade(p, b.fade, after);
  }

  static void set_coefficients(typename Pair<S>::One& one, const TokenCoefficients<S>& w, S past,
                               S own) {
    one.value = w.value;
    one.beta = w.beta;
    one.retrieved = w.retrieved * past;
    one.read = w.read * past;
    one.own = w.read * own;
  }

  void fade(Pair<S>& p, S second, S past) {
    const bool kept = is_kept(past);
    p.fade = kept ? S(1) : past;
    past_ = kept ? past : S(1);
    p.one.written = second / past_;
    p.two.written = S(1) / past_;
  }

  // Keys and queries see the columns as they have faded by then. `second` is null for no second
  // token.
  void fade_columns(Pair<S>& p, const S* first, const S* second, Index i) {
    const auto faded = [&](Index which, const S* by, const S* x) -> const S* {
      using Vector = Eigen::Map<Eigen::Array<S, Eigen::Dynamic, 1>>;
      using Given = Eigen::Map<const Eigen::Array<S, Eigen::Dynamic, 1>>;
      Vector to(buffer_ + (i * vectors + which) * columns_, columns_);
      if (by == nullptr)
        to = Given(x, columns_);
      else
        to = Given(by, columns_) * Given(x, columns_);
      return to.data();
    };
    p.fades = faded(0, second, first);
    p.one.lookup_key = faded(1, first, p.one.lookup_key);
    p.one.query = faded(2, first, p.one.query);
    p.two.lookup_key = faded(3, p.fades, p.two.lookup_key);
    p.two.query = faded(4, p.fades, p.two.query);
    p.one.key = faded(5, second, p.one.key);
  }

  const Tokens<S>& tokens_;
  Index columns_;
  S past_ = S(1);
  S* buffer_ = nullptr;
  Pair<S> pairs_[most];
};

/// Takes W, d_v×d_k with contiguous columns, through `steps` tokens.
template <DecayKind decay_kind, bool HasDeltaTerm, class Matrix, class S, class Weights>
void scan_pairs(Matrix& W, const Tokens<S>& tokens, Index steps, const Weights& weights) {
  struct Use;
  Panels<S, Use, tall_panel(HasDeltaTerm)> panels(W.rows(), W.cols());
  panels.copy_in(W.data(), W.colStride());
  Pairs<S, decay_kind, HasDeltaTerm> pairs(tokens, W.cols());
  for (Index t = 0; t < steps;) {
    const Index count = pairs.make(t, steps, weights);
    panels.each([&](auto packets, const auto& p) {
      run_pairs<PanelScan, S, packets, HasDeltaTerm, decay_kind>(p, panels.columns(), pairs.data(),
                                                                 count);
    });
    t += 2 * count;
  }
  panels.copy_out(W.data(), W.colStride(), pairs.past());
}

#define FASTWEIGHTS_SCAN_PANEL(keyword, S, R, HasDeltaTerm, decay_kind)       \
  keyword template void run_pairs<PanelScan, S, R, HasDeltaTerm, decay_kind>( \
      const Panel<S>&, Index, const Pair<S>*, Index)
/// Explicit instances, or with `extern` their declarations: of one or two packets and of the
/// tallest panels where those are taller.
#define FASTWEIGHTS_SCAN_PANELS(keyword, S, decay_kind)     \
  FASTWEIGHTS_SCAN_PANEL(keyword, S, 1, false, decay_kind); \
  FASTWEIGHTS_SCAN_PANEL(keyword, S, 2, false, decay_kind); \
  FASTWEIGHTS_SCAN_PANEL(keyword, S, 1, true, decay_kind);  \
  FASTWEIGHTS_SCAN_PANEL(keyword, S, 2, true, decay_kind)
#define FASTWEIGHTS_SCAN_KERNELS(keyword, S)              \
  FASTWEIGHTS_SCAN_PANELS(keyword, S, DecayKind::none);   \
  FASTWEIGHTS_SCAN_PANELS(keyword, S, DecayKind::scalar); \
  FASTWEIGHTS_SCAN_PANELS(keyword, S, DecayKind::per_key)
#define FASTWEIGHTS_TALL_SCAN_KERNELS(keyword, S)                 \
  FASTWEIGHTS_SCAN_PANEL(keyword, S, 4, true, DecayKind::none);   \
  FASTWEIGHTS_SCAN_PANEL(keyword, S, 4, true, DecayKind::scalar); \
  FASTWEIGHTS_SCAN_PANEL(keyword, S, 4, true, DecayKind::per_key)

#ifdef FASTWEIGHTS_COMPILED
FASTWEIGHTS_SCAN_KERNELS(extern, float);
FASTWEIGHTS_SCAN_KERNELS(extern, double);
FASTWEIGHTS_TALL_SCAN_KERNELS(extern, float);
FASTWEIGHTS_TALL_SCAN_KERNELS(extern, double);
#endif

}  // namespace FASTWEIGHTS_KERNELS
}  // namespace fw::detail
