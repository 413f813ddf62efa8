#pragma once

#include <fastweights/core/scratch.hpp>
#include <fastweights/kernels/scan/matrix_pass.hpp>
#include <fastweights/kernels/scan/pair.hpp>
#include <fastweights/kernels/simd/stored.hpp>

namespace fw::detail {
inline namespace FASTWEIGHTS_KERNELS {

/// What a matrix W has still to take in, before a token and after it has faded:
///
///     W ← fade W diag(fades) + Σ_{i<count} e_i k_iᵀ
template <class S> struct Waiting {
  Columns<S> keys, updates;
  Index count;
  S fade;
  const S* fades;  // null where columns fade alike
};

/// A token that meets W and what waits for it. Its own key and update are number `count` there.
template <class S> struct DeferredToken {
  const S *lookup_key = nullptr, *query = nullptr;     // k and q, times the fades of W's columns
  const S *of_lookup = nullptr, *of_answer = nullptr;  // k_i·k and k_i·q, times what e_i fades by
  const S *values = nullptr, *betas = nullptr;         // the latter null where it is a number
  S* output = nullptr;
  TokenCoefficients<S> by = {};
  bool flushes = false;  // whether W takes in all that waits, this token included
};

/// a[i] = k_i·k and b[i] = k_i·q of the first `count` keys; room for an even number of both.
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

/// f(w, j) for column j of N.
template <class Column, class F>
EIGEN_ALWAYS_INLINE void each_column(Group<Column, 1>& w, Index j, const F& f) {
  f(w.only, j);
}
template <class Column, int N, class F>
EIGEN_ALWAYS_INLINE void each_column(Group<Column, N>& w, Index j, const F& f) {
  each_column(w.first, j, f);
  each_column(w.second, j + N / 2, f);
}

/// W takes in what waits. Rows as below; W is that of the first of them.
template <class Column, class S> class DeferredFlush {
 public:
  template <class T>
  static EIGEN_DONT_INLINE void run(T* W, Index stride, Index columns, const Waiting<S>& w,
                                    Index count, Index first, Index skipped) {
    const Index whole = columns / together * together;
    for (Index j = 0; j < whole; j += together)
      few<together>(W + j * stride, stride, j, w, count, first, skipped);
    for (Index j = whole; j < columns; ++j)
      few<1>(W + j * stride, stride, j, w, count, first, skipped);
  }

 private:
  // Columns whose packets take half the registers, while the updates go through them.
  static constexpr int buffer =
      EIGEN_ARCH_DEFAULT_NUMBER_OF_REGISTERS / 2 / std::max(1, int(Column::size / lanes<S>));
  static constexpr int together = buffer >= 4 ? 4 : buffer >= 2 ? 2 : 1;

  template <int N, class T>
  static EIGEN_ALWAYS_INLINE void few(T* W, Index stride, Index from, const Waiting<S>& w,
                                      Index count, Index first, Index skipped) {
    Group<Column, N> some;
    each_column(some, 0, [&](Column& c, Index j) {
      c = Stored<Column>::load(W + j * stride);
      c.scale(w.fades == nullptr ? w.fade : w.fades[from + j]);
    });
    for (Index i = 0; i < count; ++i) {
      const Column e = Column::load(w.updates(i) + first);
      const S* const key = w.keys(i) + from;
      each_column(some, 0, [&](Column& c, Index j) { c.add(e, key[j]); });
    }
    each_column(some, 0, [&](Column& c, Index j) { store_behind(c, W + j * stride, skipped); });
  }
};

/// Some rows of W, of entries T. `first`: the first of them; the panel's first `skipped` rows are
/// left as they are, since another panel has done them.
template <class Column, class S, bool HasDeltaTerm, bool Answers> class DeferredRows {
 public:
  /// W += first.
  template <class T>
  static EIGEN_DONT_INLINE void step(T* W, Index stride, Index columns, const DeferredToken<S>& t,
                                     const Waiting<S>& w, Index first, Index skipped) {
    const Sums sums = products(W + first, stride, columns, t, w, first);
    const Column e = update_of(t, sums.key, first);
    store_behind(e, w.updates(w.count) + first, skipped);
    if constexpr (Answers) {
      Column y = sums.query;
      y.add(e, t.of_answer[w.count]);
      y.scale(t.by.read);
      store_behind(y, t.output + first, skipped);
    }
    if (t.flushes)
      DeferredFlush<Column, S>::run(W + first, stride, columns, w, w.count + 1, first, skipped);
  }

  template <class T>
  static EIGEN_DONT_INLINE void read(const T* W, Index stride, Index columns,
                                     const DeferredToken<S>& t, const Waiting<S>& w, Index first,
                                     Index skipped) {
    Column y = products(W + first, stride, columns, t, w, first).query;
    y.scale(t.by.read);
    store_behind(y, t.output + first, skipped);
  }

 private:
  struct Sums {
    Column key, query;
  };
  static constexpr int packets = std::max(1, int(Column::size / lanes<S>));
  // Enough sums to hide the latency of a multiply-add.
  static constexpr bool by_two = packets * (int{HasDeltaTerm} + int{Answers}) < 8;

  static EIGEN_ALWAYS_INLINE void visit(const Column& x, S key, S query, Sums& sums) {
    if constexpr (HasDeltaTerm) sums.key.add(x, key);
    if constexpr (Answers) sums.query.add(x, query);
  }

  template <class T>
  static EIGEN_ALWAYS_INLINE Sums products(const T* W, Index stride, Index columns,
                                           const DeferredToken<S>& t, const Waiting<S>& w,
                                           Index first) {
    Sums sums{Column::all(S(0)), Column::all(S(0))};
    if constexpr (!HasDeltaTerm && !Answers) return sums;
    Sums others = sums;
    const S *key = t.lookup_key, *query = t.query;
    Index j = 0;
    for (; by_two && j + 2 <= columns; j += 2) {
      visit(Stored<Column>::load(W + j * stride), key[j], query[j], sums);
      visit(Stored<Column>::load(W + (j + 1) * stride), key[j + 1], query[j + 1], others);
    }
    for (; j < columns; ++j) visit(Stored<Column>::load(W + j * stride), key[j], query[j], sums);
    sums.key.add(others.key);
    sums.query.add(others.query);
    sums.key.scale(w.fade);
    sums.query.scale(w.fade);
    for (Index i = 0; i < w.count; ++i)
      visit(Column::load(w.updates(i) + first), t.of_lookup[i], t.of_answer[i], sums);
    return sums;
  }

  static EIGEN_ALWAYS_INLINE Column update_of(const DeferredToken<S>& t, const Column& found,
                                              Index first) {
    Column e = Column::load(t.values + first);
    e.scale(t.by.value);
    if constexpr (HasDeltaTerm) e.add(found, -t.by.retrieved);
    if (t.betas != nullptr)
      e.scale(Column::load(t.betas + first));
    else
      e.scale(t.by.beta);
    return e;
  }
};

/// f(a column type, first row, rows to skip) for panels that make up all rows of a matrix.
template <class S, class F> void each_panel(Index rows, const F& f) {
  Index first = 0;
  const auto panels = [&]<class Column>(std::type_identity<Column> column) {
    for (; first + Column::size <= rows; first += Column::size) f(column, first, Index(0));
  };
  // All sums of the tallest are in registers; the fewer panels, the less often is W skipped
  // through.
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

/// A matrix of entries T with contiguous columns.
template <class T> struct StoredMatrix {
  T* data;
  Index stride, rows, columns;
};
template <class M> auto stored_matrix(M& W) {
  using T = std::remove_pointer_t<decltype(W.data())>;
  return StoredMatrix<T>{W.data(), W.colStride(), W.rows(), W.cols()};
}

// Functions that are not inline, so that programs which link fastweights::compiled do not compile
// them again.
template <bool HasDeltaTerm, bool Answers, class T, class S>
void deferred_step(const StoredMatrix<T>& W, const DeferredToken<S>& t, const Waiting<S>& w) {
  each_panel<S>(W.rows, [&]<class Column>(std::type_identity<Column>, Index first, Index skipped) {
    DeferredRows<Column, S, HasDeltaTerm, Answers>::step(W.data, W.stride, W.columns, t, w, first,
                                                         skipped);
  });
}
template <class T, class S>
void deferred_read(const StoredMatrix<const T>& W, const DeferredToken<S>& t, const Waiting<S>& w) {
  each_panel<S>(W.rows, [&]<class Column>(std::type_identity<Column>, Index first, Index skipped) {
    DeferredRows<Column, S, false, true>::read(W.data, W.stride, W.columns, t, w, first, skipped);
  });
}
template <class T, class S> void deferred_flush(const StoredMatrix<T>& W, const Waiting<S>& w) {
  each_panel<S>(W.rows, [&]<class Column>(std::type_identity<Column>, Index first, Index skipped) {
    DeferredFlush<Column, S>::run(W.data + first, W.stride, W.columns, w, w.count, first, skipped);
  });
}

#define FASTWEIGHTS_DEFERRED_STEP(keyword, T, S, HasDeltaTerm, Answers) \
  keyword template void deferred_step<HasDeltaTerm, Answers>(           \
      const StoredMatrix<T>&, const DeferredToken<S>&, const Waiting<S>&)
/// Explicit instances, or with `extern` their declarations.
#define FASTWEIGHTS_DEFERRED_KERNELS(keyword, T, S)                                             \
  FASTWEIGHTS_DEFERRED_STEP(keyword, T, S, false, false);                                       \
  FASTWEIGHTS_DEFERRED_STEP(keyword, T, S, false, true);                                        \
  FASTWEIGHTS_DEFERRED_STEP(keyword, T, S, true, false);                                        \
  FASTWEIGHTS_DEFERRED_STEP(keyword, T, S, true, true);                                         \
  keyword template void deferred_read<T>(const StoredMatrix<const T>&, const DeferredToken<S>&, \
                                         const Waiting<S>&);                                    \
  keyword template void deferred_flush(const StoredMatrix<T>&, const Waiting<S>&)

#ifdef FASTWEIGHTS_COMPILED
FASTWEIGHTS_DEFERRED_KERNELS(extern, float, float);
FASTWEIGHTS_DEFERRED_KERNELS(extern, double, double);
FASTWEIGHTS_DEFERRED_KERNELS(extern, Eigen::bfloat16, float);
FASTWEIGHTS_DEFERRED_KERNELS(extern, Eigen::half, float);
#endif

}  // namespace FASTWEIGHTS_KERNELS
}  // namespace fw::detail
