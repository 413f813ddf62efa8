#pragma once

#include <fastweights/core/scratch.hpp>
#include <fastweights/kernels/scan/matrix_pass.hpp>
#include <fastweights/kernels/scan/pair.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// The inputs of a step; members as in Pair::One.
template <class S> struct StepToken {
  const S *lookup_key, *query, *key, *value, *betas, *decays;
  S* output;
  TokenCoefficients<S> coefficients;
  S key_query;          // k·q
  S* errors = nullptr;  // the rounding errors of W, with W's stride; see DecayKind::compensated
};

/// One step for some rows of W, in place. It passes over the panel twice, for the products and for
/// the update, so that a panel in the first-level cache is loaded and stored once.
template <class S, int R, DecayKind decay_kind, bool HasDeltaTerm> class PanelStep {
 public:
  /// The first `skipped` rows of the panel are not changed: another panel has processed them.
  static EIGEN_ALWAYS_INLINE void run(S* W, Index stride, Index columns, const StepToken<S>& t,
                                      Index first, Index skipped) {
    W += first;
    if constexpr (HasDeltaTerm)
      write_and_read<false>(W, stride, columns, t,
                            finish(t, products(W, stride, columns, t), first, skipped), first,
                            skipped);
    else
      step_sum_rule(W, stride, columns, t, first, skipped);
  }

 private:
  using Column = Rows<S, R>;
  struct Sums {
    Column key, query;
    EIGEN_ALWAYS_INLINE void add(const Sums& other) {
      key.add(other.key);
      query.add(other.query);
    }
  };

  // Without a delta term the update does not depend on W, so that one pass suffices.
  static EIGEN_ALWAYS_INLINE void step_sum_rule(S* W, Index stride, Index columns,
                                                const StepToken<S>& t, Index first, Index skipped) {
    const Column u = zero_skipped(update_of(t, first), skipped);
    Column y = write_and_read<true>(W, stride, columns, t, u, first, skipped);
    y.scale(t.coefficients.read_scale);
    store_part(y, t.output + first, skipped, Column::size);
  }

  // W ← decay W + u kᵀ. With Reads it returns the new W q.
  template <bool Reads>
  static EIGEN_ALWAYS_INLINE Column write_and_read(S* W, Index stride, Index columns,
                                                   const StepToken<S>& t, const Column& u,
                                                   [[maybe_unused]] Index first, Index skipped) {
    [[maybe_unused]] S* const errors =
        decay_kind == DecayKind::compensated ? t.errors + first : nullptr;
    const S *key = t.key, *decays = t.decays, *query = t.query;
    const Column decay =
        row_decays(decay_kind == DecayKind::scalar ? t.coefficients.decay : S(1), skipped);
    const auto visit = [&](Index j, Column& sum) {
      S* const w_j = W + j * stride;
      Column w = Column::load(w_j);
      if constexpr (decay_kind == DecayKind::scalar) w.scale(decay);
      if constexpr (decay_kind == DecayKind::per_channel) w.scale(row_decays(decays[j], skipped));
      if constexpr (decay_kind == DecayKind::compensated) {
        // Carrying twice changes nothing, as in skipped rows.
        S* const errors_j = errors + j * stride;
        Column error = Column::load(errors_j);
        error.add(u, key[j]);
        carry(w, error);
        error.store(errors_j);
      } else {
        w.add(u, key[j]);
      }
      w.store(w_j);
      if constexpr (Reads) sum.add(w, query[j]);
    };
    return sum_over_columns<Column>(columns, Column::all(S(0)), visit);
  }

  static EIGEN_ALWAYS_INLINE Sums products(const S* W, Index stride, Index columns,
                                           const StepToken<S>& t) {
    const S *key = t.lookup_key, *query = t.query;
    const auto visit = [&](Index j, Sums& sums) {
      const Column w = Column::load(W + j * stride);
      sums.key.add(w, key[j]);
      sums.query.add(w, query[j]);
    };
    return sum_over_columns<Sums>(columns, {Column::all(S(0)), Column::all(S(0))}, visit);
  }

  // Calls visit(j, sum) for every column j and returns the total. Several independent sums hide the
  // latency of a multiply-add.
  template <class Sum, class F>
  static EIGEN_ALWAYS_INLINE Sum sum_over_columns(Index columns, const Sum& zero, const F& visit) {
    Sum sum = zero, second = zero, third = zero, fourth = zero;
    Index j = 0;
    if constexpr (R == 1)
      for (; j + 4 <= columns; j += 4) {
        visit(j, sum);
        visit(j + 1, second);
        visit(j + 2, third);
        visit(j + 3, fourth);
      }
    if constexpr (R < 4)
      for (; j + 2 <= columns; j += 2) {
        visit(j, sum);
        visit(j + 1, second);
      }
    for (; j < columns; ++j) visit(j, sum);
    if constexpr (R == 1) third.add(fourth), second.add(third);
    if constexpr (R < 4) sum.add(second);
    return sum;
  }

  // The decay of all rows, with 1 for the skipped rows.
  static EIGEN_ALWAYS_INLINE Column row_decays(S decay, Index skipped) {
    if (skipped == 0) return Column::all(decay);
    S rows[Column::size];
    std::fill(rows, rows + skipped, S(1));
    std::fill(rows + skipped, rows + Column::size, decay);
    return Column::load(rows);
  }

  static EIGEN_ALWAYS_INLINE Column finish(const StepToken<S>& t, Sums sums, Index first,
                                           Index skipped) {
    const S total_decay = decay_kind == DecayKind::scalar ? t.coefficients.decay : S(1);
    sums.key.scale(-t.coefficients.retrieved_scale * total_decay);
    const Column u = update_of(t, first, sums.key);
    sums.query.scale(t.coefficients.read_scale * total_decay);
    sums.query.add(u, t.coefficients.read_scale * t.key_query);
    store_part(sums.query, t.output + first, skipped, Column::size);
    return zero_skipped(u, skipped);
  }

  static EIGEN_ALWAYS_INLINE Column update_of(const StepToken<S>& t, Index first,
                                              const Column& minus_retrieved = Column::all(S(0))) {
    Column u = minus_retrieved;
    u.add(Column::load(t.value + first), t.coefficients.value_scale);
    if (t.betas != nullptr)
      u.scale(Column::load(t.betas + first));
    else
      u.scale(t.coefficients.beta);
    return u;
  }

  // u with 0 in the skipped rows.
  static EIGEN_ALWAYS_INLINE Column zero_skipped(const Column& u, Index skipped) {
    if (skipped == 0) return u;
    S rows[Column::size];
    u.store(rows);
    return load_part<Column>(rows, skipped, Column::size);
  }
};

/// PanelStep for R packets of rows. Not inline: programs that link fastweights::compiled do not
/// compile it again.
template <class S, int R, DecayKind decay_kind, bool HasDeltaTerm>
EIGEN_DONT_INLINE void step_panel(S* W, Index stride, Index columns, const StepToken<S>& t,
                                  Index first, Index skipped) {
  PanelStep<S, R, decay_kind, HasDeltaTerm>::run(W, stride, columns, t, first, skipped);
}

#define FASTWEIGHTS_STEP_PANEL(keyword, S, R, decay_kind, HasDeltaTerm) \
  keyword template void step_panel<S, R, decay_kind, HasDeltaTerm>(     \
      S*, Index, Index, const StepToken<S>&, Index, Index)
#define FASTWEIGHTS_STEP_PANELS(keyword, S, decay_kind, HasDeltaTerm) \
  FASTWEIGHTS_STEP_PANEL(keyword, S, 1, decay_kind, HasDeltaTerm);    \
  FASTWEIGHTS_STEP_PANEL(keyword, S, 2, decay_kind, HasDeltaTerm);    \
  FASTWEIGHTS_STEP_PANEL(keyword, S, 4, decay_kind, HasDeltaTerm);    \
  FASTWEIGHTS_STEP_PANEL(keyword, S, 8, decay_kind, HasDeltaTerm)
/// Explicit instances, or with `extern` their declarations.
#define FASTWEIGHTS_STEP_KERNELS(keyword, S)                          \
  FASTWEIGHTS_STEP_PANELS(keyword, S, DecayKind::none, false);        \
  FASTWEIGHTS_STEP_PANELS(keyword, S, DecayKind::none, true);         \
  FASTWEIGHTS_STEP_PANELS(keyword, S, DecayKind::scalar, false);      \
  FASTWEIGHTS_STEP_PANELS(keyword, S, DecayKind::scalar, true);       \
  FASTWEIGHTS_STEP_PANELS(keyword, S, DecayKind::compensated, false); \
  FASTWEIGHTS_STEP_PANELS(keyword, S, DecayKind::compensated, true);  \
  FASTWEIGHTS_STEP_PANELS(keyword, S, DecayKind::per_channel, false); \
  FASTWEIGHTS_STEP_PANELS(keyword, S, DecayKind::per_channel, true)

#ifdef FASTWEIGHTS_COMPILED
FASTWEIGHTS_STEP_KERNELS(extern, float);
FASTWEIGHTS_STEP_KERNELS(extern, double);
#endif

/// Whether a step with d_v rows has a kernel, which needs at least one packet of rows.
template <class S> bool has_step(Index rows) { return rows >= lanes<S>; }

/// One step. W is d_v×d_k with contiguous columns.
template <DecayKind decay_kind, bool HasDeltaTerm, class Matrix, class S>
void step_rows(Matrix& W, const StepToken<S>& t) {
  const Index rows = W.rows(), columns = W.cols(), stride = W.colStride();
  Index first = 0;
  const auto panels = [&]<int R>(std::integral_constant<int, R>) {
    for (; first + R * lanes<S> <= rows; first += R * lanes<S>)
      step_panel<S, R, decay_kind, HasDeltaTerm>(W.data(), stride, columns, t, first, 0);
  };
  if constexpr (EIGEN_ARCH_DEFAULT_NUMBER_OF_REGISTERS >= 32)
    panels(std::integral_constant<int, 8>{});
  panels(std::integral_constant<int, 4>{});
  panels(std::integral_constant<int, 2>{});
  panels(std::integral_constant<int, 1>{});
  const Index last = rows - lanes<S>;
  if (first < rows)
    step_panel<S, 1, decay_kind, HasDeltaTerm>(W.data(), stride, columns, t, last, first - last);
}

/// As step_rows, for a rule's token.
template <DecayKind decay_kind, bool HasDeltaTerm, class Matrix, class S>
EIGEN_ALWAYS_INLINE void step_token(Matrix& W, S* errors, const Tokens<S>& tokens,
                                    const TokenCoefficients<S>& coefficients) {
  using Vector = Eigen::Map<const Eigen::Array<S, Eigen::Dynamic, 1>>;
  const S *k = tokens.key(0), *q = tokens.query(0), *decays = tokens.decays(0);
  const Vector key(k, W.cols()), query(q, W.cols());
  StepToken<S> t{k,
                 q,
                 k,
                 tokens.value(0),
                 tokens.beta(0),
                 decays,
                 tokens.output(0),
                 coefficients,
                 HasDeltaTerm ? (key * query).sum() : S(0),
                 errors};
  if constexpr (HasDeltaTerm && decay_kind == DecayKind::per_channel) {
    const Vector decay(decays, W.cols());
    scratch<S, Matrix::ColsAtCompileTime, 2>(W.cols(), [&](auto& decayed_key, auto& decayed_query) {
      decayed_key = decay * key;
      decayed_query = decay * query;
      t.lookup_key = decayed_key.data();
      t.query = decayed_query.data();
      step_rows<decay_kind, HasDeltaTerm>(W, t);
    });
  } else {
    step_rows<decay_kind, HasDeltaTerm>(W, t);
  }
}

}  // namespace fw::detail
