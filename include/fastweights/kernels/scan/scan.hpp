#pragma once

#include <fastweights/kernels/scan/column_decays.hpp>
#include <optional>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// Makes pairs of corrections. With one decay per token, the stored matrix is W divided by
/// `divisor()`; with one per column, also by those of the columns, `divisors()`. Corrections are a
/// sequence:
///
///     static constexpr Index batch;          // the largest number of pairs at a time
///     UpdateOrder order() const;
///     Index size() const;
///     Correction<S> get(Index i, Index slot) const;  // once for each, in order; vectors that it
///                                                    // computes live until the slot's next use
///     void list_prefetches(Prefetches<S>&, Index i) const;   // for the pair at i, if it exists
template <class S, DecayKind decay_kind, Products products> class Pairs {
 public:
  static constexpr Index batch = decay_kind == DecayKind::per_channel ? 16 : 32;

  explicit Pairs(Index columns) : columns_(columns) {
    if constexpr (per_channel) column_decays_.emplace(columns, batch);
  }

  /// Makes pairs of the corrections from `first` on, and returns their number.
  template <class Corrections> Index make(Index first, const Corrections& corrections) {
    constexpr Index most = std::min(batch, Corrections::batch);
    const Index end = corrections.size();
    Index count = 0;
    for (Index i = first; i < end && count < most; i += 2, ++count) {
      Pair<S>& p = pairs_[count];
      if (worth_prefetching<S>(columns_)) {
        p.prefetches.rows.clear();
        p.prefetches.columns.clear();
        corrections.list_prefetches(p.prefetches, i + 2 * most);
      }
      const Correction<S> one = corrections.get(i, 2 * count);
      set_pair(p, one, i + 1 < end ? corrections.get(i + 1, 2 * count + 1) : nothing_after(one),
               corrections.order(), count);
      if constexpr (two_pairs_per_pass<has_lookups, decay_kind>)
        if (count % 2 == 1) set_previous_products(pairs_[count - 1], p);
    }
    return count;
  }
  const Pair<S>* data() const { return pairs_; }
  /// W is the stored matrix times this, and times `divisors()`.
  S divisor() const {
    if constexpr (per_channel) return ColumnDecays<S, products>::divisor;
    return decay_kind == DecayKind::scalar ? deferred_.divisor() : S(1);
  }
  /// One per column, or null.
  const S* divisors() const { return per_channel ? column_decays_->divisors() : nullptr; }

 private:
  static constexpr bool per_channel = decay_kind == DecayKind::per_channel;
  static constexpr bool has_lookups = products != Products::queries;

  void set_previous_products(const Pair<S>& before, Pair<S>& p) const {
    const S *k1 = before.one.key, *k2 = before.two.key;
    dot_products({k1, k2, k1, k2}, {p.one.query, p.one.query, p.two.query, p.two.query}, columns_,
                 p.previous_products);
  }

  // A correction that neither writes nor reads.
  static Correction<S> nothing_after(const Correction<S>& c) {
    return {c.lookup, c.key,   c.value, c.query, c.bonus_key,
            nullptr,  nullptr, nullptr, nullptr, {S(0), S(0), S(1), S(0), S(1)}};
  }

  EIGEN_ALWAYS_INLINE void set_pair(Pair<S>& p, const Correction<S>& one, const Correction<S>& two,
                                    UpdateOrder order, [[maybe_unused]] Index i) {
    const auto pointers = [](const Correction<S>& c) {
      return typename Pair<S>::One{c.lookup, c.query, c.key, c.value, c.betas, c.output, c.error};
    };
    p.one = pointers(one);
    p.two = pointers(two);
    const S* decayed_key = one.key;  // with the decays of the second token
    if constexpr (per_channel)
      decayed_key = column_decays_->apply(p, one.decays, two.decays, order, i);
    if constexpr (decay_kind == DecayKind::per_value_row) {
      p.one.row_decays = one.decays;
      p.two.row_decays = two.decays;
    }
    // b_1·a_2, own_1·q_1, b_1·q_2, own_2·q_2, and b_1 with the decay of the second token where a_2
    // or q_2 meets W after it
    S key_products[4] = {};
    const S* const looked_up = order.lookup_before_decay ? one.key : decayed_key;
    const S* const read = order.reads_first ? one.key : decayed_key;
    if constexpr (products == Products::lookups)
      dot_products({looked_up}, {two.lookup}, columns_, key_products);
    else if constexpr (has_lookups)
      dot_products({looked_up, one.bonus_key, read, two.bonus_key},
                   {two.lookup, one.query, two.query, two.query}, columns_, key_products);
    else
      dot_products({one.bonus_key, read, two.bonus_key}, {one.query, two.query, two.query},
                   columns_, key_products + 1);
    const auto &a = one.coefficients, &b = two.coefficients;
    // The factors from the stored matrix to W̄ of the first and of the second token.
    const S before = divisor(), first = before * a.decay, second = first * b.decay;
    p.key_key = b.retrieved_scale * (order.lookup_before_decay ? S(1) : b.decay) * key_products[0];
    p.cross_key_query = b.read_scale * (order.reads_first ? S(1) : b.decay) * key_products[2];
    set_coefficients(p.one, a, order.lookup_before_decay ? before : first,
                     order.reads_first ? before : first, key_products[1]);
    set_coefficients(p.two, b, order.lookup_before_decay ? first : second,
                     order.reads_first ? first : second, key_products[3]);
    set_decay(p, a.decay, b.decay);
  }

  static void set_coefficients(typename Pair<S>::One& one, const TokenCoefficients<S>& c,
                               S lookup_decay, S read_decay, S key_query) {
    one.value_scale = c.value_scale;
    one.beta = c.beta;
    one.retrieved_scale = c.retrieved_scale * lookup_decay;
    one.read_scale = c.read_scale * read_decay;
    one.key_query = c.read_scale * key_query;
  }

  void set_decay(Pair<S>& p, S first, S second) {
    p.decay = S(1);
    if constexpr (decay_kind == DecayKind::scalar) {
      p.decay = deferred_.decay(first * second);
      p.one.write_scale = second / divisor();
      p.two.write_scale = S(1) / divisor();
    }
  }

  Index columns_;
  DeferredDecay<S> deferred_;
  std::optional<ColumnDecays<S, products>> column_decays_;
  Pair<S> pairs_[batch];
};

/// One correction per token, given by sequences of vectors, whose look-up key is the write key; see
/// Pairs. β is 1 if `beta` is null; outputs and errors are null if they are not needed.
template <class S> struct SequenceCorrections {
  Columns<const S> key, value, query, decays;
  Columns<S> output;
  Index steps;
  Columns<const S> beta = {};
  Columns<S> errors = {};

  static constexpr Index batch = 32;
  static constexpr UpdateOrder order() { return {}; }
  Index size() const { return steps; }
  Correction<S> get(Index t, Index) const {
    TokenCoefficients<S> c;
    if (beta.data != nullptr) c.beta = *beta(t);
    return {key(t),  key(t),    value(t),  query(t),  key(t),
            nullptr, decays(t), output(t), errors(t), c};
  }
  void list_prefetches(Prefetches<S>& prefetches, Index t) const {
    for (const Index last = std::min(t + 2, steps); t < last; ++t) {
      prefetches.rows.add(value(t), output(t));
      prefetches.columns.add(key(t), query(t));
    }
  }
};

/// Scans corrections. W is d_v×d_k with contiguous columns, and so are its rounding errors, which
/// only DecayKind::compensated has.
template <DecayKind decay_kind, Products products, class Matrix, class S, class Corrections>
void scan_pairs(Matrix& W, S* errors, const Corrections& corrections) {
  struct Use;
  constexpr bool has_lookups = products != Products::queries;
  constexpr int tallest = tall_panel(has_lookups);
  constexpr bool compensated = decay_kind == DecayKind::compensated;
  Panels<S, Use, tallest, compensated ? 2 : 1> panels(W.rows(), W.cols());
  Pairs<S, decay_kind, products> pairs(W.cols());
  panels.copy_in(W.data(), W.colStride(), S(1) / pairs.divisor(), 0, pairs.divisors());
  if (compensated) panels.copy_in(errors, W.colStride(), S(1), 1);
  for (Index i = 0; i < corrections.size();) {
    const Index count = pairs.make(i, corrections);
    for (const Panel<S>& panel : panels)
      run_pairs<PanelScanOf<products>::template Panel, tallest, has_lookups, decay_kind>(
          panel, W.cols(), pairs.data(), count);
    i += 2 * count;
  }
  panels.copy_out(W.data(), W.colStride(), pairs.divisor(), 0, pairs.divisors());
  if (compensated) panels.copy_out(errors, W.colStride(), S(1), 1);
}

#define FASTWEIGHTS_SCAN_PANEL(keyword, S, R, products, decay_kind)                               \
  keyword template void PairLoop<PanelScan<S, R, products, decay_kind>, S, R,                     \
                                 products != Products::queries, decay_kind>::run(const Panel<S>&, \
                                                                                 Index,           \
                                                                                 const Pair<S>*,  \
                                                                                 Index)
#define FASTWEIGHTS_LOW_SCAN_PANELS(keyword, S, products, decay_kind) \
  FASTWEIGHTS_SCAN_PANEL(keyword, S, 1, products, decay_kind);        \
  FASTWEIGHTS_SCAN_PANEL(keyword, S, 2, products, decay_kind)
#define FASTWEIGHTS_TALL_SCAN_PANEL(keyword, S, products, decay_kind) \
  FASTWEIGHTS_SCAN_PANEL(keyword, S, 4, products, decay_kind)
// for the decays of most rules
#define FASTWEIGHTS_SCAN_PANELS(panels, keyword, S, products) \
  panels(keyword, S, products, DecayKind::none);              \
  panels(keyword, S, products, DecayKind::scalar);            \
  panels(keyword, S, products, DecayKind::per_channel)
/// Explicit instances, or with `extern` their declarations, of panels with one or two packets. The
/// TALL macro has those with four.
#define FASTWEIGHTS_SCAN_KERNELS(keyword, S)                                                       \
  FASTWEIGHTS_SCAN_PANELS(FASTWEIGHTS_LOW_SCAN_PANELS, keyword, S, Products::queries);             \
  FASTWEIGHTS_SCAN_PANELS(FASTWEIGHTS_LOW_SCAN_PANELS, keyword, S, Products::lookups);             \
  FASTWEIGHTS_SCAN_PANELS(FASTWEIGHTS_LOW_SCAN_PANELS, keyword, S, Products::lookups_and_queries); \
  FASTWEIGHTS_LOW_SCAN_PANELS(keyword, S, Products::queries, DecayKind::compensated);              \
  FASTWEIGHTS_LOW_SCAN_PANELS(keyword, S, Products::queries, DecayKind::per_value_row);            \
  FASTWEIGHTS_LOW_SCAN_PANELS(keyword, S, Products::lookups_and_queries, DecayKind::compensated);  \
  FASTWEIGHTS_LOW_SCAN_PANELS(keyword, S, Products::removal, DecayKind::none);                     \
  FASTWEIGHTS_LOW_SCAN_PANELS(keyword, S, Products::removal, DecayKind::per_channel)
#define FASTWEIGHTS_TALL_SCAN_KERNELS(keyword, S)                                                  \
  FASTWEIGHTS_SCAN_PANELS(FASTWEIGHTS_TALL_SCAN_PANEL, keyword, S, Products::lookups);             \
  FASTWEIGHTS_SCAN_PANELS(FASTWEIGHTS_TALL_SCAN_PANEL, keyword, S, Products::lookups_and_queries); \
  FASTWEIGHTS_SCAN_PANEL(keyword, S, 4, Products::lookups_and_queries, DecayKind::compensated);    \
  FASTWEIGHTS_SCAN_PANEL(keyword, S, 4, Products::removal, DecayKind::none);                       \
  FASTWEIGHTS_SCAN_PANEL(keyword, S, 4, Products::removal, DecayKind::per_channel)

#ifdef FASTWEIGHTS_COMPILED
FASTWEIGHTS_SCAN_KERNELS(extern, float);
FASTWEIGHTS_SCAN_KERNELS(extern, double);
FASTWEIGHTS_TALL_SCAN_KERNELS(extern, float);
FASTWEIGHTS_TALL_SCAN_KERNELS(extern, double);
#endif

}  // namespace fw::detail
