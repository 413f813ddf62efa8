#pragma once

#include <fastweights/core/scratch.hpp>
#include <fastweights/kernels/decode/narrow_step.hpp>
#include <fastweights/kernels/decode/step_token.hpp>
#include <fastweights/kernels/scan/matrix_pass.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// One step for `rows` rows of W, in place; see Rows for the number of rows of a Column. It passes
/// over the panel twice, for the products and for the update, so that a panel in the first-level
/// cache is loaded and stored once.
template <class S, class Column, DecayKind decay_kind, bool HasLookups> class PanelStep {
 public:
  static EIGEN_ALWAYS_INLINE void run(S* W, Index stride, Index columns, const StepToken<S>& t,
                                      Index first, Index rows) {
    W += first;
    if (!reads_new_state && t.output != nullptr) {
      const Column u = finish(t, products(W, stride, columns, t, rows), first, rows);
      write_and_read<false>(W, stride, columns, t, Update{u, t.key}, first, rows);
      return;
    }
    Column retrieved = Column::all(S(0));
    if constexpr (HasLookups) {
      retrieved = product(W, stride, columns, t.lookup, rows);
      retrieved.scale(t.lookup_scale);
    }
    const Column u = update_of(t, first, rows, retrieved);
    if (t.output == nullptr) {
      write_and_read<false>(W, stride, columns, t, Update{u, t.key}, first, rows);
    } else if constexpr (reads_new_state) {
      Column y = write_and_read<true>(W, stride, columns, t, Update{u, t.key}, first, rows);
      y.scale(t.coefficients.read_scale);
      y.store(t.output + first, rows);
    }
  }

 protected:
  struct Sums {
    Column key, query;
    EIGEN_ALWAYS_INLINE void add(const Sums& other) {
      key.add(other.key);
      query.add(other.query);
    }
  };

  // True if the second pass computes y from the new W. Without a delta term it is the only pass.
  // Small panels save k·q, which y = W q + (k·q) u of the first pass needs. With decays per channel
  // the query is that of the old W.
  static constexpr bool reads_new_state =
      !HasLookups || (Column::packets <= 2 && decay_kind != DecayKind::per_channel);

  static EIGEN_ALWAYS_INLINE S total_decay(const StepToken<S>& t) {
    return decay_kind == DecayKind::scalar ? t.coefficients.decay : S(1);
  }

  // u kᵀ
  struct Update {
    Column u;
    const S* key;
    EIGEN_ALWAYS_INLINE void add_to(Column& w, Index j) const { w.add(u, key[j]); }
  };

  // The second pass over a panel that may be too large for the first-level cache goes from the last
  // column to the first: the last ones are still there. With a small panel the next step would wait
  // for its first column.
  static constexpr bool goes_back = HasLookups && Column::packets > 2;

  // W ← decay W + the update. With Reads it returns the new W q.
  template <bool Reads, class U>
  static EIGEN_ALWAYS_INLINE Column write_and_read(S* W, Index stride, Index columns,
                                                   const StepToken<S>& t, const U& update,
                                                   Index first, Index rows) {
    struct Visit {
      S *W, *rounding_errors;
      Index stride, rows, last;
      const S *query, *decays;
      Column decay;
      U update;
      EIGEN_ALWAYS_INLINE void operator()(Index i, Column& sum) const {
        const Index j = goes_back ? last - i : i;
        S* const w_j = W + j * stride;
        Column w = Column::load(w_j, rows);
        if constexpr (decay_kind == DecayKind::scalar) w.scale(decay);
        if constexpr (decay_kind == DecayKind::per_channel) w.scale(decays[j]);
        if constexpr (decay_kind == DecayKind::compensated) {
          S* const errors_j = rounding_errors + j * stride;
          Column error = Column::load(errors_j, rows);
          update.add_to(error, j);
          carry(w, error);
          error.store(errors_j, rows);
        } else {
          update.add_to(w, j);
        }
        w.store(w_j, rows);
        if constexpr (Reads) sum.add(w, query[j]);
      }
    };
    const Column decay = Column::all(t.coefficients.decay);
    S* const rounding_errors =
        decay_kind == DecayKind::compensated ? t.rounding_errors + first : nullptr;
    return sum_over_columns<Column>(
        columns, Column::all(S(0)),
        Visit{W, rounding_errors, stride, rows, columns - 1, t.query, t.decays, decay, update});
  }

  static EIGEN_ALWAYS_INLINE Column product(const S* W, Index stride, Index columns, const S* x,
                                            Index rows) {
    struct Visit {
      const S* W;
      Index stride, rows;
      const S* x;
      EIGEN_ALWAYS_INLINE void operator()(Index j, Column& sum) const {
        sum.add(Column::load(W + j * stride, rows), x[j]);
      }
    };
    return sum_over_columns<Column>(columns, Column::all(S(0)), Visit{W, stride, rows, x});
  }

  static EIGEN_ALWAYS_INLINE Sums products(const S* W, Index stride, Index columns,
                                           const StepToken<S>& t, Index rows) {
    struct Visit {
      const S* W;
      Index stride, rows;
      const S *key, *query;
      EIGEN_ALWAYS_INLINE void operator()(Index j, Sums& sums) const {
        Column w = Column::load(W + j * stride, rows);
        // GCC would load tall columns for each of the two sums. Small ones are faster without.
        if constexpr (Column::packets > 2) keep_in_registers(w);
        sums.key.add(w, key[j]);
        sums.query.add(w, query[j]);
      }
    };
    return sum_over_columns<Sums>(columns, {Column::all(S(0)), Column::all(S(0))},
                                  Visit{W, stride, rows, t.lookup, t.query});
  }

  // Calls visit(j, sum) for every column j and returns the total. Several independent sums hide the
  // latency of a multiply-add.
  template <class Sum, class F>
  static EIGEN_ALWAYS_INLINE Sum sum_over_columns(Index columns, const Sum& zero, const F& visit) {
    constexpr int packets = Column::packets;
    Sum sum = zero, second = zero, third = zero, fourth = zero;
    Index j = 0;
    if constexpr (packets == 1)
      for (; j + 4 <= columns; j += 4) {
        visit(j, sum);
        visit(j + 1, second);
        visit(j + 2, third);
        visit(j + 3, fourth);
      }
    if constexpr (packets < 4) {
      for (; j + 2 <= columns; j += 2) {
        visit(j, sum);
        visit(j + 1, second);
      }
      if (j < columns) visit(j, sum);
    } else {
      for (; j < columns; ++j) visit(j, sum);
    }
    if constexpr (packets == 1) third.add(fourth), second.add(third);
    if constexpr (packets < 4) sum.add(second);
    return sum;
  }

  static EIGEN_ALWAYS_INLINE Column finish(const StepToken<S>& t, Sums sums, Index first,
                                           Index rows) {
    sums.key.scale(t.lookup_scale);
    const Column u = update_of(t, first, rows, sums.key);
    sums.query.scale(t.coefficients.read_scale * total_decay(t));
    sums.query.add(u, t.coefficients.read_scale * t.key_query);
    sums.query.store(t.output + first, rows);
    return u;
  }

  static EIGEN_ALWAYS_INLINE Column update_of(const StepToken<S>& t, Index first, Index rows,
                                              const Column& minus_retrieved) {
    Column u = minus_retrieved;
    u.add(Column::load(t.value + first, rows), t.coefficients.value_scale);
    if (HasLookups && t.error != nullptr) u.store(t.error + first, rows);
    if (t.betas != nullptr)
      u.scale(Column::load(t.betas + first, rows));
    else
      u.scale(t.coefficients.beta);
    return u;
  }
};

/// PanelStep for R packets of rows, or for two packets that overlap if there are fewer rows. Not
/// inline: programs that link fastweights::compiled do not compile it again.
template <class S, int R, DecayKind decay_kind, bool HasLookups>
EIGEN_DONT_INLINE void step_panel(S* W, Index stride, Index columns, const StepToken<S>& t,
                                  Index first, [[maybe_unused]] Index rows) {
  using Column = Rows<S, R>;
  PanelStep<S, Column, decay_kind, HasLookups>::run(W, stride, columns, t, first,
                                                    R == 2 ? rows : Column::size);
}

/// PanelStep for fewer rows than N, the size of a packet: one or two packets of half the size, or
/// of a quarter, or plain numbers.
template <class S, DecayKind decay_kind, bool HasLookups, Index N = lanes<S>>
EIGEN_ALWAYS_INLINE void step_part(S* W, Index stride, Index columns, const StepToken<S>& t,
                                   Index rows) {
  constexpr Index half = N / 2;
  constexpr bool has_packet = half > 1 && size_within<S, half> == half;
  using One = PanelStep<S, Rows<S, 1, has_packet ? half : 1>, decay_kind, HasLookups>;
  using Two =
      PanelStep<S, Rows<S, has_packet ? 2 : N, has_packet ? half : 1>, decay_kind, HasLookups>;
  if (has_packet && rows == half + 1) {
    // Not two packets that overlap: a load waits for two stores that overlap it.
    One::run(W, stride, columns, t, 0, half);
    PanelStep<S, Rows<S, 1, 1>, decay_kind, HasLookups>::run(W, stride, columns, t, half, 1);
  } else if (rows > half) {
    Two::run(W, stride, columns, t, 0, rows);
  } else if (half == 1 || (has_packet && rows == half)) {
    One::run(W, stride, columns, t, 0, rows);
  } else if constexpr (half > 1) {
    step_part<S, decay_kind, HasLookups, half>(W, stride, columns, t, rows);
  }
}

/// step_part, not inline.
template <class S, DecayKind decay_kind, bool HasLookups>
EIGEN_DONT_INLINE void step_few_rows(S* W, Index stride, Index columns, const StepToken<S>& t,
                                     Index rows) {
  step_part<S, decay_kind, HasLookups>(W, stride, columns, t, rows);
}

#define FASTWEIGHTS_STEP_PANEL(keyword, S, R, decay_kind, HasLookups) \
  keyword template void step_panel<S, R, decay_kind, HasLookups>(     \
      S*, Index, Index, const StepToken<S>&, Index, Index)
#define FASTWEIGHTS_STEP_NARROW(keyword, S, rows, decay_kind, HasLookups) \
  keyword template void step_narrow<S, rows, decay_kind, HasLookups>(S*, Index, const StepToken<S>&)
#define FASTWEIGHTS_STEP_PANELS(keyword, S, decay_kind, HasLookups)                \
  FASTWEIGHTS_STEP_PANEL(keyword, S, 1, decay_kind, HasLookups);                   \
  FASTWEIGHTS_STEP_PANEL(keyword, S, 2, decay_kind, HasLookups);                   \
  FASTWEIGHTS_STEP_PANEL(keyword, S, 4, decay_kind, HasLookups);                   \
  FASTWEIGHTS_STEP_PANEL(keyword, S, 8, decay_kind, HasLookups);                   \
  FASTWEIGHTS_STEP_NARROW(keyword, S, 1, decay_kind, HasLookups);                  \
  FASTWEIGHTS_STEP_NARROW(keyword, S, 2, decay_kind, HasLookups);                  \
  FASTWEIGHTS_STEP_NARROW(keyword, S, 4, decay_kind, HasLookups);                  \
  keyword template void step_few_rows<S, decay_kind, HasLookups>(S*, Index, Index, \
                                                                 const StepToken<S>&, Index)
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

/// True if a matrix has a fixed size so small that its step is inline, with its sizes as constants.
template <class Matrix> constexpr bool is_small() {
  constexpr Index rows = Matrix::RowsAtCompileTime, columns = Matrix::ColsAtCompileTime;
  if (rows == Eigen::Dynamic || columns == Eigen::Dynamic) return false;
  return rows <= 2 * lanes<typename Matrix::Scalar> && rows <= 16 && columns <= 16;
}

/// Calls f(R, first, count) for panels of at most `tallest` packets, which together are all rows:
/// at least a packet. R is a std::integral_constant; see step_panel.
template <class S, int tallest, class F>
EIGEN_ALWAYS_INLINE void for_step_panels(Index rows, const F& f) {
  Index first = 0;
  const auto panels = [&]<int R>(std::integral_constant<int, R> packets) {
    constexpr Index size = R * lanes<S>;
    // as long as they leave no rows or at least a packet
    for (; first + size == rows || first + size + lanes<S> <= rows; first += size)
      f(packets, first, size);
  };
  if constexpr (tallest >= 8) panels(std::integral_constant<int, 8>{});
  if constexpr (tallest >= 4) panels(std::integral_constant<int, 4>{});
  panels(std::integral_constant<int, 2>{});
  if (const Index left = rows - first; left == lanes<S> || left > 2 * lanes<S>) {
    f(std::integral_constant<int, 1>{}, first, lanes<S>);
    first += lanes<S>;
  }
  if (first < rows) f(std::integral_constant<int, 2>{}, first, rows - first);
}

/// One step, by panels of rows.
template <class S, DecayKind decay_kind, bool HasLookups>
void step_panels(S* W, Index stride, Index rows, Index columns, const StepToken<S>& t) {
  if (rows < lanes<S>) return step_few_rows<S, decay_kind, HasLookups>(W, stride, columns, t, rows);
  constexpr int tallest = EIGEN_ARCH_DEFAULT_NUMBER_OF_REGISTERS >= 32 ? 8 : 4;
  for_step_panels<S, tallest>(
      rows, [&]<int R>(std::integral_constant<int, R>, Index first, Index count) {
        step_panel<S, R, decay_kind, HasLookups>(W, stride, columns, t, first, count);
      });
}

/// One step of a narrow W; see is_narrow.
template <class S, DecayKind decay_kind, bool HasLookups>
void step_narrow_of(S* W, Index rows, Index columns, const StepToken<S>& t) {
  if (rows == 1)
    step_narrow<S, 1, decay_kind, HasLookups>(W, columns, t);
  else if (rows == 2)
    step_narrow<S, 2, decay_kind, HasLookups>(W, columns, t);
  else
    step_narrow<S, 4, decay_kind, HasLookups>(W, columns, t);
}

/// One step. W is d_v×d_k with contiguous columns.
template <DecayKind decay_kind, bool HasLookups, class Matrix, class S>
EIGEN_ALWAYS_INLINE void step_rows(Matrix& W, const StepToken<S>& t) {
  const Index rows = W.rows(), columns = W.cols(), stride = W.colStride();
  constexpr int fixed = Matrix::RowsAtCompileTime;
  if constexpr (fixed == Eigen::Dynamic || is_narrow<S>(fixed, 2 * lanes<S>, fixed))
    if (is_narrow<S>(rows, columns, stride)) {
      if constexpr (fixed != Eigen::Dynamic && Matrix::ColsAtCompileTime != Eigen::Dynamic)
        NarrowStep<S, fixed, decay_kind, HasLookups>::run(W.data(), columns, t);
      else
        step_narrow_of<S, decay_kind, HasLookups>(W.data(), rows, columns, t);
      return;
    }
  if constexpr (is_small<Matrix>()) {
    using One = PanelStep<S, Rows<S, 1>, decay_kind, HasLookups>;
    using Two = PanelStep<S, Rows<S, 2>, decay_kind, HasLookups>;
    if constexpr (Matrix::RowsAtCompileTime < lanes<S>) {
      step_part<S, decay_kind, HasLookups>(W.data(), stride, columns, t, rows);
    } else if constexpr (Matrix::RowsAtCompileTime > lanes<S> + 1) {
      Two::run(W.data(), stride, columns, t, 0, rows);
    } else {
      One::run(W.data(), stride, columns, t, 0, lanes<S>);
      if (rows > lanes<S>)  // alone, for the reason given in step_part
        PanelStep<S, Rows<S, 1, 1>, decay_kind, HasLookups>::run(W.data(), stride, columns, t,
                                                                 lanes<S>, 1);
    }
  } else {
    step_panels<S, decay_kind, HasLookups>(W.data(), stride, rows, columns, t);
  }
}

/// Σ xᵢ yᵢ. A dynamic size is a function of its own: as a call of Eigen's, the expression would go
/// through memory, which takes as long as a step of a small state.
template <class S> EIGEN_DONT_INLINE S dynamic_dot(const S* x, const S* y, Index size) {
  using Vector = Eigen::Map<const Eigen::Array<S, Eigen::Dynamic, 1>>;
  return (Vector(x, size) * Vector(y, size)).sum();
}
template <int Size, class S> EIGEN_ALWAYS_INLINE S dot(const S* x, const S* y, Index size) {
  using Vector = Eigen::Map<const Eigen::Array<S, Size, 1>>;
  if constexpr (Size == Eigen::Dynamic)
    return dynamic_dot(x, y, size);
  else
    return (Vector(x, size) * Vector(y, size)).sum();
}

/// True if a PanelStep of a rule with a delta term uses k·q; see its reads_new_state.
template <class S> constexpr bool needs_key_query(Index rows, DecayKind decay_kind) {
  return decay_kind == DecayKind::per_channel || rows > 2 * lanes<S> || rows == 3;
}

/// As step_rows, for a correction.
template <DecayKind decay_kind, bool HasLookups, class Matrix, class S>
EIGEN_ALWAYS_INLINE void step_by_panels(Matrix& W, S* rounding_errors, const Correction<S>& c,
                                        bool lookup_before_decay) {
  constexpr int columns = Matrix::ColsAtCompileTime;
  StepToken<S> t;
  t.set(c);
  const bool narrow = is_narrow<S>(W.rows(), W.cols(), W.colStride());
  t.key_query = S(0);
  if (HasLookups && c.output != nullptr && !narrow && needs_key_query<S>(W.rows(), decay_kind))
    t.key_query = dot<columns>(c.key, c.query, W.cols());
  t.lookup_scale = -c.coefficients.retrieved_scale;
  t.rounding_errors = rounding_errors;
  if (decay_kind == DecayKind::scalar && !lookup_before_decay)
    t.lookup_scale *= c.coefficients.decay;
  if constexpr (HasLookups && decay_kind == DecayKind::per_channel) {
    using Vector = Eigen::Map<const Eigen::Array<S, columns, 1>>;
    const Vector decay(c.decays, W.cols()), lookup(c.lookup, W.cols()), query(c.query, W.cols());
    scratch<S, columns, 2>(W.cols(), [&](auto& decayed_key, auto& decayed_query) {
      decayed_key = decay * lookup;
      if (!lookup_before_decay) t.lookup = decayed_key.data();
      if (c.output != nullptr && !narrow) {
        decayed_query = decay * query;
        t.query = decayed_query.data();
      }
      step_rows<decay_kind, HasLookups>(W, t);
    });
  } else {
    step_rows<decay_kind, HasLookups>(W, t);
  }
}

}  // namespace fw::detail
