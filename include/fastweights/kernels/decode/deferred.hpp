#pragma once

#include <fastweights/core/scratch.hpp>
#include <fastweights/kernels/scan/matrix_pass.hpp>
#include <fastweights/kernels/scan/pair.hpp>
#include <fastweights/kernels/simd/stored.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// The pending writes of a matrix W. Flushing them computes
///
///     W ← decay W diag(decays) + Σ_{i<count} u_i k_iᵀ
template <class S> struct PendingWrites {
  Columns<S> keys, updates;
  Index count;
  S decay;
  const S* decays;            // one decay per column, or null
  S* errors = nullptr;        // the rounding errors of a compensated W, with W's stride, or null
  const S* scales = nullptr;  // one per row of an 8-bit W, or null
};

/// A token and its products with the pending writes. Its own write is pending write number `count`.
template <class S> struct DeferredToken {
  const S *lookup_key = nullptr, *query = nullptr;  // a and q, times the decays of W's columns
  const S *key_products = nullptr, *query_products = nullptr;  // c_i b_i·a and c_i b_i·q
  S lookup_decay = S(1);                                       // of W, before it is looked up
  const S *value = nullptr, *betas = nullptr;                  // betas is null if β is one number
  S* output = nullptr;
  TokenCoefficients<S> coefficients = {};
  bool flush = false;  // apply all pending writes to W, including this token's; not in 8 bits
};

/// a[i] = k_i·k and b[i] = k_i·q of the first `count` keys. a and b need an even number of entries.
template <class S>
EIGEN_DONT_INLINE void products_of_keys(const Columns<S>& keys, Index count, const S* k, const S* q,
                                        Index columns, S* a, S* b) {
  for (Index i = 0; i < count; i += 2) {
    const S *one = keys(i), *two = keys(std::min(i + 1, count - 1));
    S sums[4];
    dot_products({one, two, one, two}, {k, k, q, q}, columns, sums);
    a[i] = sums[0], a[i + 1] = sums[1], b[i] = sums[2], b[i + 1] = sums[3];
  }
}

/// Calls f(w, j) for each of N columns.
template <class Column, class F>
EIGEN_ALWAYS_INLINE void for_each_column(RegisterTuple<Column, 1>& w, Index j, const F& f) {
  f(w.only, j);
}
template <class Column, int N, class F>
EIGEN_ALWAYS_INLINE void for_each_column(RegisterTuple<Column, N>& w, Index j, const F& f) {
  for_each_column(w.first, j, f);
  for_each_column(w.second, j + N / 2, f);
}

/// Applies the pending writes to some rows of W. W points to the first row; see DeferredRows for
/// the other parameters. A compensated W is rounded once for all pending writes.
template <class Column, class S> class DeferredFlush {
 public:
  template <class T>
  static EIGEN_ALWAYS_INLINE void run(T* W, Index stride, Index columns, const PendingWrites<S>& w,
                                      Index count, Index first, Index skipped) {
    if (w.errors == nullptr)
      flush<false>(W, stride, columns, w, count, first, skipped);
    else
      flush<true>(W, stride, columns, w, count, first, skipped);
  }

 private:
  // The number of columns per pass. Their packets use at most half of the registers.
  static constexpr int budget =
      EIGEN_ARCH_DEFAULT_NUMBER_OF_REGISTERS / 2 / std::max(1, int(Column::size / lanes<S>));
  static constexpr int columns_per_pass = budget >= 4 ? 4 : budget >= 2 ? 2 : 1;

  template <bool Compensated, class T>
  static EIGEN_DONT_INLINE void flush(T* W, Index stride, Index columns, const PendingWrites<S>& w,
                                      Index count, Index first, Index skipped) {
    const Index whole = columns / columns_per_pass * columns_per_pass;
    for (Index j = 0; j < whole; j += columns_per_pass)
      flush_columns<Compensated, columns_per_pass>(W + j * stride, stride, j, w, count, first,
                                                   skipped);
    for (Index j = whole; j < columns; ++j)
      flush_columns<Compensated, 1>(W + j * stride, stride, j, w, count, first, skipped);
  }

  template <bool Compensated, int N, class T>
  static EIGEN_ALWAYS_INLINE void flush_columns(T* W, Index stride, Index from,
                                                const PendingWrites<S>& w, Index count, Index first,
                                                Index skipped) {
    RegisterTuple<Column, N> group;
    for_each_column(group, 0, [&](Column& c, Index j) {
      if constexpr (Compensated) {
        c = Column::load(w.errors + first + (from + j) * stride);
      } else {
        c = Stored<Column>::load(W + j * stride);
        c.scale(w.decays == nullptr ? w.decay : w.decays[from + j]);
      }
    });
    for (Index i = 0; i < count; ++i) {
      const Column u = Column::load(w.updates(i) + first);
      const S* const key = w.keys(i) + from;
      for_each_column(group, 0, [&](Column& c, Index j) { c.add(u, key[j]); });
    }
    for_each_column(group, 0, [&](Column& c, Index j) {
      if constexpr (Compensated)
        carry_sum(c, W + j * stride, w.errors + first + (from + j) * stride, skipped);
      else
        store_after(c, W + j * stride, skipped);
    });
  }

  // W += c, and the rounding errors, also those of the stored type.
  template <class T>
  static EIGEN_ALWAYS_INLINE void carry_sum(Column& c, T* W, S* errors, Index skipped) {
    const Column before = Stored<Column>::load(W);
    Column sum = before;
    sum.add(c);
    store_after(sum, W, skipped);
    Column added = Stored<Column>::load(W);
    added.subtract(before);
    c.subtract(added);
    store_after(c, errors, skipped);
  }
};

/// Some rows of W, from `first` on, with entries T. The first `skipped` rows of the panel are not
/// changed, because another panel has processed them.
template <class Column, class S, bool HasLookups, bool Reads> class DeferredRows {
 public:
  /// Processes a token for rows `first` … of W; W points to the whole matrix.
  template <class T>
  static EIGEN_DONT_INLINE void step(T* W, Index stride, Index columns, const DeferredToken<S>& t,
                                     const PendingWrites<S>& w, Index first, Index skipped) {
    const Sums sums = products(W + first, stride, columns, t, w, first);
    const Column u = update_of(t, sums.key, first);
    store_after(u, w.updates(w.count) + first, skipped);
    if constexpr (Reads) {
      Column y = sums.query;
      y.add(u, t.query_products[w.count]);
      y.scale(t.coefficients.read_scale);
      store_after(y, t.output + first, skipped);
    }
    if constexpr (!std::is_same_v<T, std::int8_t>)
      if (t.flush)
        DeferredFlush<Column, S>::run(W + first, stride, columns, w, w.count + 1, first, skipped);
  }

  template <class T>
  static EIGEN_DONT_INLINE void read(const T* W, Index stride, Index columns,
                                     const DeferredToken<S>& t, const PendingWrites<S>& w,
                                     Index first, Index skipped) {
    Column y = products(W + first, stride, columns, t, w, first).query;
    y.scale(t.coefficients.read_scale);
    store_after(y, t.output + first, skipped);
  }

 private:
  struct Sums {
    Column key, query;
  };
  static constexpr int packets = std::max(1, int(Column::size / lanes<S>));
  // Two columns per iteration give enough sums to hide the latency of a multiply-add.
  static constexpr bool two_columns = packets * (int{HasLookups} + int{Reads}) < 8;

  static EIGEN_ALWAYS_INLINE void visit(const Column& x, S key, S query, Sums& sums) {
    if constexpr (HasLookups) sums.key.add(x, key);
    if constexpr (Reads) sums.query.add(x, query);
  }

  template <class T>
  static EIGEN_ALWAYS_INLINE Sums products(const T* W, Index stride, Index columns,
                                           const DeferredToken<S>& t, const PendingWrites<S>& w,
                                           Index first) {
    Sums sums{Column::all(S(0)), Column::all(S(0))};
    if constexpr (!HasLookups && !Reads) return sums;
    Sums others = sums;
    const S *key = t.lookup_key, *query = t.query;
    Index j = 0;
    for (; two_columns && j + 2 <= columns; j += 2) {
      visit(Stored<Column>::load(W + j * stride), key[j], query[j], sums);
      visit(Stored<Column>::load(W + (j + 1) * stride), key[j + 1], query[j + 1], others);
    }
    for (; j < columns; ++j) visit(Stored<Column>::load(W + j * stride), key[j], query[j], sums);
    sums.key.add(others.key);
    sums.query.add(others.query);
    if constexpr (std::is_same_v<T, std::int8_t>) {
      const Column scales = Column::load(w.scales + first);
      sums.key.scale(scales);
      sums.query.scale(scales);
    }
    sums.key.scale(t.lookup_decay);
    sums.query.scale(w.decay);
    // Separately, because a single write may be lost beside a large W.
    Sums pending{Column::all(S(0)), Column::all(S(0))};
    for (Index i = 0; i < w.count; ++i)
      visit(Column::load(w.updates(i) + first), t.key_products[i], t.query_products[i], pending);
    sums.key.add(pending.key);
    sums.query.add(pending.query);
    return sums;
  }

  static EIGEN_ALWAYS_INLINE Column update_of(const DeferredToken<S>& t, const Column& retrieved,
                                              Index first) {
    Column u = Column::load(t.value + first);
    u.scale(t.coefficients.value_scale);
    if constexpr (HasLookups) u.add(retrieved, -t.coefficients.retrieved_scale);
    if (t.betas != nullptr)
      u.scale(Column::load(t.betas + first));
    else
      u.scale(t.coefficients.beta);
    return u;
  }
};

/// Calls f(a column type, first row, rows to skip) for panels that cover all rows of a matrix.
template <class S, class F> void for_each_panel(Index rows, const F& f) {
  Index first = 0;
  const auto panels = [&]<class Column>(std::type_identity<Column> column) {
    for (; first + Column::size <= rows; first += Column::size) f(column, first, Index(0));
  };
  // The tallest panels still have all sums in registers. Fewer panels need fewer strided passes
  // over W.
  if constexpr (EIGEN_ARCH_DEFAULT_NUMBER_OF_REGISTERS >= 32)
    panels(std::type_identity<Rows<S, 8>>());
  panels(std::type_identity<Rows<S, 4>>());
  panels(std::type_identity<Rows<S, 2>>());
  panels(std::type_identity<Rows<S, 1>>());
  if (rows < lanes<S>)
    panels(std::type_identity<OneRow<S>>());
  else if (const Index last = rows - lanes<S>; first < rows)
    f(std::type_identity<Rows<S, 1>>(), last, first - last);
}

/// A matrix with entries T and contiguous columns.
template <class T> struct StoredMatrix {
  T* data;
  Index stride, rows, columns;
};
template <class M> auto stored_matrix(M& W) {
  using T = std::remove_pointer_t<decltype(W.data())>;
  return StoredMatrix<T>{W.data(), W.colStride(), W.rows(), W.cols()};
}

// Not inline: programs that link fastweights::compiled do not compile these functions again.
template <bool HasLookups, bool Reads, class T, class S>
void deferred_step(const StoredMatrix<T>& W, const DeferredToken<S>& t, const PendingWrites<S>& w) {
  for_each_panel<S>(W.rows,
                    [&]<class Column>(std::type_identity<Column>, Index first, Index skipped) {
                      DeferredRows<Column, S, HasLookups, Reads>::step(W.data, W.stride, W.columns,
                                                                       t, w, first, skipped);
                    });
}
template <class T, class S>
void deferred_read(const StoredMatrix<const T>& W, const DeferredToken<S>& t,
                   const PendingWrites<S>& w) {
  for_each_panel<S>(W.rows, [&]<class Column>(std::type_identity<Column>, Index first,
                                              Index skipped) {
    DeferredRows<Column, S, false, true>::read(W.data, W.stride, W.columns, t, w, first, skipped);
  });
}
template <class T, class S>
void deferred_flush(const StoredMatrix<T>& W, const PendingWrites<S>& w) {
  for_each_panel<S>(W.rows, [&]<class Column>(std::type_identity<Column>, Index first,
                                              Index skipped) {
    DeferredFlush<Column, S>::run(W.data + first, W.stride, W.columns, w, w.count, first, skipped);
  });
}

#define FASTWEIGHTS_DEFERRED_STEP(keyword, T, S, HasLookups, Reads) \
  keyword template void deferred_step<HasLookups, Reads>(           \
      const StoredMatrix<T>&, const DeferredToken<S>&, const PendingWrites<S>&)
/// Explicit instances, or with `extern` their declarations.
#define FASTWEIGHTS_DEFERRED_STEPS(keyword, T, S)                                               \
  FASTWEIGHTS_DEFERRED_STEP(keyword, T, S, false, false);                                       \
  FASTWEIGHTS_DEFERRED_STEP(keyword, T, S, false, true);                                        \
  FASTWEIGHTS_DEFERRED_STEP(keyword, T, S, true, false);                                        \
  FASTWEIGHTS_DEFERRED_STEP(keyword, T, S, true, true);                                         \
  keyword template void deferred_read<T>(const StoredMatrix<const T>&, const DeferredToken<S>&, \
                                         const PendingWrites<S>&)
#define FASTWEIGHTS_DEFERRED_KERNELS(keyword, T, S) \
  FASTWEIGHTS_DEFERRED_STEPS(keyword, T, S);        \
  keyword template void deferred_flush(const StoredMatrix<T>&, const PendingWrites<S>&)

#ifdef FASTWEIGHTS_COMPILED
FASTWEIGHTS_DEFERRED_KERNELS(extern, float, float);
FASTWEIGHTS_DEFERRED_KERNELS(extern, double, double);
FASTWEIGHTS_DEFERRED_KERNELS(extern, Eigen::bfloat16, float);
FASTWEIGHTS_DEFERRED_KERNELS(extern, Eigen::half, float);
#endif

}  // namespace fw::detail
