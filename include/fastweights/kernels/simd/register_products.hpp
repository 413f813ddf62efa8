#pragma once

#include <fastweights/core/scratch.hpp>
#include <fastweights/kernels/simd/packet.hpp>
#include <type_traits>

/// \file
/// Products of small matrices. N columns of the result are in registers at a time,
/// RegisterTuple<Column, N>; a Column is some rows of one column.

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// N objects as a binary tree. Compilers keep it in registers more reliably than an array.
template <class T, int N> struct RegisterTuple {
  RegisterTuple<T, N / 2> first;
  RegisterTuple<T, N - N / 2> second;
};
template <class T> struct RegisterTuple<T, 1> { T only; };

/// Calls f(part, i) for the N parts of a tuple.
template <class Column, int N, class F>
EIGEN_ALWAYS_INLINE void for_parts(RegisterTuple<Column, N>& x, const F& f, Index i = 0) {
  if constexpr (N == 1) {
    f(x.only, i);
  } else {
    for_parts(x.first, f, i);
    for_parts(x.second, f, i + N / 2);
  }
}

template <class Column, class S, int N>
EIGEN_ALWAYS_INLINE void load(RegisterTuple<Column, N>& x, const S* from, Index stride) {
  for_parts(x, [=](Column& part, Index i)
                   FASTWEIGHTS_INLINE_LAMBDA { part = Column::load(from + i * stride); });
}
template <class Column, class S, int N>
EIGEN_ALWAYS_INLINE void store(RegisterTuple<Column, N>& x, S* to, Index stride) {
  for_parts(x, [=](const Column& part, Index i)
                   FASTWEIGHTS_INLINE_LAMBDA { part.store(to + i * stride); });
}
template <class S, class Column, int N>
EIGEN_ALWAYS_INLINE void set_zero(RegisterTuple<Column, N>& x) {
  for_parts(x, [](Column& part, Index) FASTWEIGHTS_INLINE_LAMBDA { part = Column::all(S(0)); });
}

/// Keeps x in registers. Otherwise GCC loads it from memory for every use, and loads are the
/// bottleneck.
template <class S, int R, Index N> EIGEN_ALWAYS_INLINE void keep_in_registers(Rows<S, R, N>& x) {
  if constexpr (R == 1) {
    auto packet = x.packet;  // GCC would keep x itself in memory
#if defined __GNUC__ && defined EIGEN_VECTORIZE_AVX512
    asm("" : "+v"(packet));
#elif defined __GNUC__ && defined EIGEN_VECTORIZE_SSE && !defined __wasm__
    asm("" : "+x"(packet));
#endif
    x.packet = packet;
  } else {
    keep_in_registers(x.upper);
    keep_in_registers(x.lower);
  }
}

/// The first factor of a product: columns `stride` apart.
template <class S> struct LeftFactor {
  const S* data;
  Index stride;
};
/// The second factor of a product: entry (i, j) is data[i * row + j * column].
template <class S> struct RightFactor {
  const S* data;
  Index row, column;
};

/// sums += A B, where A has `depth` columns.
template <class Column, class S, int N>
EIGEN_ALWAYS_INLINE void add_product(RegisterTuple<Column, N>& sums, LeftFactor<S> a,
                                     RightFactor<S> b, Index depth) {
  for (Index i = 0; i < depth; ++i, a.data += a.stride, b.data += b.row) {
    Column column = Column::load(a.data);
    keep_in_registers(column);
    for_parts(sums, [=](Column& sum, Index j)
                        FASTWEIGHTS_INLINE_LAMBDA { sum.add(column, b.data[j * b.column]); });
  }
}

/// Calls f(j, N) for columns j … j + N − 1, which cover columns 0 … n − 1 once. N is an
/// integral_constant, `most` or 1.
template <int most, class F> EIGEN_ALWAYS_INLINE void for_columns(Index n, const F& f) {
  Index j = 0;
  for (; j + most <= n; j += most) f(j, std::integral_constant<int, most>());
  for (; j < n; ++j) f(j, std::integral_constant<int, 1>());
}

}  // namespace fw::detail
