#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <complex>
#include <fastweights/core/abi.hpp>
#include <fastweights/core/threads.hpp>
#include <fastweights/kernels/simd/packed_product.hpp>
#include <fastweights/math/parallel_for.hpp>
#include <limits>
#include <type_traits>

namespace fw::inline FASTWEIGHTS_ABI::detail {

// A matrix in memory or its transpose. One type stands for blocks, maps and transposes, so that
// the product kernels are compiled once per scalar and not for every pair of these.
template <class S, bool Transposed> struct InMemory {
  using Scalar = std::remove_const_t<S>;
  static constexpr bool is_transposed = Transposed;
  S* data;
  Eigen::Index stride;  // from one contiguous run of entries to the next

  InMemory<S, !Transposed> transposed() const { return {data, stride}; }
  auto block(Eigen::Index i, Eigen::Index j, Eigen::Index rows, Eigen::Index cols) const {
    using Plain = Eigen::Matrix<std::remove_const_t<S>, Eigen::Dynamic, Eigen::Dynamic>;
    using Matrix = std::conditional_t<std::is_const_v<S>, const Plain, Plain>;
    using Map = Eigen::Map<Matrix, 0, Eigen::OuterStride<>>;
    if constexpr (Transposed)
      return Map(data + i * stride + j, cols, rows, Eigen::OuterStride<>(stride)).transpose();
    else
      return Map(data + i + j * stride, rows, cols, Eigen::OuterStride<>(stride));
  }
};

template <class S> Factor<std::remove_const_t<S>> factor_of(const InMemory<S, false>& m) {
  return {m.data, 1, m.stride};
}
template <class S> Factor<std::remove_const_t<S>> factor_of(const InMemory<S, true>& m) {
  return {m.data, m.stride, 1};
}

// A single row is a matrix of columns of size 1, however Eigen stores it.
template <class S, class X> auto in_memory(X& x) {
  if constexpr (std::remove_const_t<X>::IsRowMajor && X::RowsAtCompileTime != 1)
    return InMemory<S, true>{x.data(), x.rowStride()};
  else
    return InMemory<S, false>{x.data(), x.colStride()};
}

/// Products in other scalars than float and double, or by a BLAS behind Eigen (EIGEN_USE_BLAS), are
/// cut into blocks: the largest is a rows×depth block times a depth×cols block.
struct ProductBlocks {
  Eigen::Index rows, depth, cols;
};

/// Eigen packs copies of both factors. For blocks of 128 and scalars of up to 8 bytes these copies
/// are on the stack.
inline constexpr ProductBlocks small_blocks{128, 128, 128};
/// With OpenMP, Eigen::nbThreads() threads share a large product of several columns. Eigen may use
/// the heap. It cuts a long sum at a depth that depends
/// on the number of threads, of at least 100 entries; sums of 96 have the same bits for any number.
inline constexpr ProductBlocks one_block{std::numeric_limits<Eigen::Index>::max(), 96,
                                         std::numeric_limits<Eigen::Index>::max()};

// True if products use the library's kernel.
#ifdef EIGEN_USE_BLAS
template <class S> inline constexpr bool has_packed_product = false;
#else
template <class S>
inline constexpr bool has_packed_product = std::is_same_v<S, float> || std::is_same_v<S, double>;
#endif

// Calls f(first row, number of rows) for parts of the rows, in as many threads as Eigen would take.
template <class F> void for_row_parts(Eigen::Index rows, Eigen::Index work, const F& f) {
  constexpr Eigen::Index height = 64, least = 1 << 20;
  const Eigen::Index panels = (rows + height - 1) / height;
  const Eigen::Index threads = std::min<Eigen::Index>({Eigen::nbThreads(), work / least, panels});
  if (threads <= 1) return f(Eigen::Index(0), rows);
  parallel_for(threads, true, [&](Eigen::Index i) {
    const Eigen::Index first = panels * i / threads * height;
    f(first, std::min(rows, panels * (i + 1) / threads * height) - first);
  });
}

/// The sizes of a product of a rows×depth and a depth×cols matrix. `adds`: C += A B, else C = A B.
struct ProductSizes {
  Eigen::Index rows, depth, cols;
  bool adds;
};

template <class To, class A, class B>
void multiply_by_panels(To to, A a, B b, const ProductSizes& n, bool parallel) {
  if constexpr (To::is_transposed)
    return multiply_by_panels(to.transposed(), b.transposed(), a.transposed(),
                              {n.cols, n.depth, n.rows, n.adds}, parallel);
  else
    for_row_parts(n.rows, parallel && n.cols > 1 ? n.rows * n.depth * n.cols : 0,
                  [&](Eigen::Index first, Eigen::Index count) {
                    multiply(factor_of(a).from(first, 0), factor_of(b), count, n.depth, n.cols,
                             Target<typename To::Scalar>{to.data + first, to.stride, n.adds});
                  });
}

template <class To, class A, class B>
void add_product_by_blocks(To to, A a, B b, const ProductSizes& n, const ProductBlocks& block) {
  using Eigen::Index;
  for (Index j = 0; j < n.cols;) {
    const Index width = std::min(block.cols, n.cols - j);
    for (Index k = 0; k < n.depth;) {
      const Index inner = std::min(block.depth, n.depth - k);
      for (Index i = 0; i < n.rows;) {
        const Index height = std::min(block.rows, n.rows - i);
        to.block(i, j, height, width).noalias() +=
            a.block(i, k, height, inner) * b.block(k, j, inner, width);
        i += height;
      }
      k += inner;
    }
    j += width;
  }
}

// Not inline: a program that links fastweights::compiled does not compile the product kernels
// again.
template <class To, class A, class B>
EIGEN_DONT_INLINE void multiply_in_memory(To to, A a, B b, const ProductSizes& n,
                                          const ProductBlocks& block) {
  if constexpr (has_packed_product<typename B::Scalar>)
    // Eigen multiplies a transposed matrix by one column without a copy.
    if (n.depth > 0 && (n.cols > 1 || factor_of(a).row == 1))
      return multiply_by_panels(to, a, b, n, block.cols > small_blocks.cols);
  if (!n.adds) to.block(0, 0, n.rows, n.cols).setZero();
  add_product_by_blocks(to, a, b, n, block);
}

/// to += a·b for matrices, maps and blocks with contiguous columns, or transposes of these. Does
/// not allocate with the default `block`.
template <class To, class A, class B>
void add_product(To&& to, const A& a, const B& b, const ProductBlocks& block = small_blocks) {
  using S = typename A::Scalar;
  multiply_in_memory(in_memory<S>(to), in_memory<const S>(a), in_memory<const S>(b),
                     {a.rows(), a.cols(), b.cols(), true}, block);
}

/// to = a·b, as add_product.
template <class To, class A, class B>
void set_product(To&& to, const A& a, const B& b, const ProductBlocks& block = small_blocks) {
  using S = typename A::Scalar;
  multiply_in_memory(in_memory<S>(to), in_memory<const S>(a), in_memory<const S>(b),
                     {a.rows(), a.cols(), b.cols(), false}, block);
}

#define FASTWEIGHTS_PRODUCT(keyword, S, TransposedA, TransposedB)                               \
  keyword template void multiply_in_memory(InMemory<S, false>, InMemory<const S, TransposedA>,  \
                                           InMemory<const S, TransposedB>, const ProductSizes&, \
                                           const ProductBlocks&)
/// Explicit instances, or with `extern` their declarations.
#define FASTWEIGHTS_PRODUCTS(keyword, S)         \
  FASTWEIGHTS_PRODUCT(keyword, S, false, false); \
  FASTWEIGHTS_PRODUCT(keyword, S, false, true);  \
  FASTWEIGHTS_PRODUCT(keyword, S, true, false);  \
  FASTWEIGHTS_PRODUCT(keyword, S, true, true)

#ifdef FASTWEIGHTS_COMPILED
FASTWEIGHTS_PRODUCTS(extern, float);
FASTWEIGHTS_PRODUCTS(extern, double);
FASTWEIGHTS_PRODUCTS(extern, std::complex<double>);
#endif

// With FASTWEIGHTS_POISON_SCRATCH, uninitialised buffers hold NaN, or the largest integer.
template <class S> void poison_buffer([[maybe_unused]] S* data, [[maybe_unused]] Eigen::Index n) {
#ifdef FASTWEIGHTS_POISON_SCRATCH
  if constexpr (std::is_integral_v<S>)
    std::fill_n(data, n, std::numeric_limits<S>::max());
  else
    std::fill_n(data, n, S(std::numeric_limits<double>::quiet_NaN()));
#endif
}

/// A buffer of n numbers owned by the thread. It is allocated by the first call that needs this
/// size and freed when the thread ends. Buffers in use at the same time need different `Use` types.
template <class S, class Use> S* thread_buffer(Eigen::Index n) {
  FASTWEIGHTS_THREAD_LOCAL Eigen::Matrix<S, Eigen::Dynamic, 1> buffer;
  if (buffer.size() < n) buffer = Eigen::Matrix<S, Eigen::Dynamic, 1>(n);
  poison_buffer(buffer.data(), n);
  return buffer.data();
}

}  // namespace fw::detail
