#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <limits>
#include <type_traits>

namespace fw::detail {

// A matrix in memory, as it lies there or transposed: one type for blocks, maps and transposes, so
// that Eigen's product kernels are compiled once for a scalar and not for every pair of these.
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

// A single row is a matrix of columns of 1, whichever way Eigen stores it.
template <class X> auto in_memory(X& x) {
  using S = std::remove_reference_t<decltype(*x.data())>;
  if constexpr (X::IsRowMajor && X::RowsAtCompileTime != 1)
    return InMemory<S, true>{x.data(), x.rowStride()};
  else
    return InMemory<S, false>{x.data(), x.colStride()};
}

template <class To, class A, class B>
EIGEN_DONT_INLINE void add_product_by_blocks(To to, A a, B b, Eigen::Index rows, Eigen::Index depth,
                                             Eigen::Index cols) {
  using Eigen::Index;
  constexpr Index block = 128;
  for (Index j = 0; j < cols; j += block) {
    const Index width = std::min(block, cols - j);
    for (Index k = 0; k < depth; k += block) {
      const Index inner = std::min(block, depth - k);
      for (Index i = 0; i < rows; i += block) {
        const Index height = std::min(block, rows - i);
        to.block(i, j, height, width).noalias() +=
            a.block(i, k, height, inner) * b.block(k, j, inner, width);
      }
    }
  }
}

/// to += a·b in blocks of 128, whose packed copies Eigen keeps on the stack (for numbers of up to 8
/// bytes): products of any size without heap. Of matrices, maps and blocks of them with contiguous
/// columns, and their transposes.
template <class To, class A, class B> void add_product(To&& to, const A& a, const B& b) {
  add_product_by_blocks(in_memory(to), in_memory(a), in_memory(b), a.rows(), a.cols(), b.cols());
}

// With FASTWEIGHTS_POISON_SCRATCH, whoever reads room that nobody wrote reads NaN, of integers the
// bits of one.
template <class S> void poison_room([[maybe_unused]] S* data, [[maybe_unused]] Eigen::Index n) {
#ifdef FASTWEIGHTS_POISON_SCRATCH
  if constexpr (std::is_integral_v<S>)
    std::fill_n(data, n, std::numeric_limits<S>::max());
  else
    std::fill_n(data, n, S(std::numeric_limits<double>::quiet_NaN()));
#endif
}

/// Room for n numbers that the thread keeps: allocated by the first call that needs as much, and
/// given back when the thread ends. `Use` tells apart rooms that are needed at the same time.
template <class S, class Use> S* thread_room(Eigen::Index n) {
  thread_local Eigen::Matrix<S, Eigen::Dynamic, 1> room;
  if (room.size() < n) room = Eigen::Matrix<S, Eigen::Dynamic, 1>(n);  // resize frees first
  poison_room(room.data(), n);
  return room.data();
}

}  // namespace fw::detail
