#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <complex>
#include <fastweights/core/abi.hpp>
#include <limits>
#include <type_traits>

namespace fw::inline FASTWEIGHTS_ABI::detail {

// A matrix in memory or its transpose. One type stands for blocks, maps and transposes, so that
// Eigen's product kernels are compiled once per scalar and not for every pair of these.
template <class S, bool Transposed> struct InMemory {
  S* data;
  Eigen::Index stride;  // from one contiguous run of entries to the next

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

// A single row is a matrix of columns of size 1, however Eigen stores it.
template <class S, class X> auto in_memory(X& x) {
  if constexpr (std::remove_const_t<X>::IsRowMajor && X::RowsAtCompileTime != 1)
    return InMemory<S, true>{x.data(), x.rowStride()};
  else
    return InMemory<S, false>{x.data(), x.colStride()};
}

/// The largest block of a product: a rows×depth block times a depth×cols block.
struct ProductBlocks {
  Eigen::Index rows, depth, cols;
};

/// Eigen packs copies of both factors. For blocks of 128 and scalars of up to 8 bytes these copies
/// are on the stack.
inline constexpr ProductBlocks without_heap{128, 128, 128};
/// Eigen may use the heap and, with OpenMP, its threads. It cuts a long sum at a depth that depends
/// on the number of threads, of at least 100 entries; sums of 96 have the same bits for any number.
inline constexpr ProductBlocks all_at_once{std::numeric_limits<Eigen::Index>::max(), 96,
                                           std::numeric_limits<Eigen::Index>::max()};

// Not inline: a program that links fastweights::compiled does not compile Eigen's product kernels
// again.
template <class To, class A, class B>
EIGEN_DONT_INLINE void add_product_by_blocks(To to, A a, B b, Eigen::Index rows, Eigen::Index depth,
                                             Eigen::Index cols, const ProductBlocks& block) {
  using Eigen::Index;
  for (Index j = 0; j < cols;) {
    const Index width = std::min(block.cols, cols - j);
    for (Index k = 0; k < depth;) {
      const Index inner = std::min(block.depth, depth - k);
      for (Index i = 0; i < rows;) {
        const Index height = std::min(block.rows, rows - i);
        to.block(i, j, height, width).noalias() +=
            a.block(i, k, height, inner) * b.block(k, j, inner, width);
        i += height;
      }
      k += inner;
    }
    j += width;
  }
}

/// to += a·b for matrices, maps and blocks with contiguous columns, or transposes of these. Does
/// not allocate with the default `block`.
template <class To, class A, class B>
void add_product(To&& to, const A& a, const B& b, const ProductBlocks& block = without_heap) {
  using S = typename A::Scalar;
  add_product_by_blocks(in_memory<S>(to), in_memory<const S>(a), in_memory<const S>(b), a.rows(),
                        a.cols(), b.cols(), block);
}

/// to = a·b, as add_product.
template <class To, class A, class B>
void set_product(To&& to, const A& a, const B& b, const ProductBlocks& block = without_heap) {
  to.setZero();
  add_product(to, a, b, block);
}

#define FASTWEIGHTS_PRODUCT(keyword, S, TransposedA, TransposedB)                                 \
  keyword template void add_product_by_blocks(InMemory<S, false>, InMemory<const S, TransposedA>, \
                                              InMemory<const S, TransposedB>, Eigen::Index,       \
                                              Eigen::Index, Eigen::Index, const ProductBlocks&)
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
  thread_local Eigen::Matrix<S, Eigen::Dynamic, 1> buffer;
  if (buffer.size() < n) buffer = Eigen::Matrix<S, Eigen::Dynamic, 1>(n);
  poison_buffer(buffer.data(), n);
  return buffer.data();
}

}  // namespace fw::detail
