#pragma once

#include <fastweights/core/forms.hpp>
#include <fastweights/kernels/decode/narrow_step.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// y = W x for a W of `rows` rows (1, 2, 4 or a packet) whose columns follow each other in memory.
/// Not inline: a call is short beside Eigen's product for a dynamic size.
template <class S, int rows>
EIGEN_DONT_INLINE void multiply_narrow(const S* W, Index columns, const S* x, S* y) {
  NarrowStep<S, rows, DecayKind::none, false>::product(W, columns, x, y);
}

/// True if W, x and y are in memory and of a kernel's scalar.
template <class W, class X, class Y> constexpr bool is_kernel_product() {
  using S = typename W::Scalar;
  constexpr int flags = int(W::Flags) & int(X::Flags) & int(Y::Flags);
  return KernelScalar<S> && std::is_same_v<S, typename X::Scalar> &&
         std::is_same_v<S, typename Y::Scalar> && X::ColsAtCompileTime == 1 &&
         Y::ColsAtCompileTime == 1 && (flags & int(Eigen::DirectAccessBit)) != 0;
}

/// Computes y = W x if W is narrow, or as high as a packet, and returns whether it is. Eigen adds
/// up one row of fixed size as fast.
template <class Y, class Matrix, class X>
EIGEN_ALWAYS_INLINE bool multiplied_narrow(Y& y, const Matrix& W, const X& x) {
  using S = typename Matrix::Scalar;
  constexpr int packet = int(lanes<S>), fixed = Matrix::RowsAtCompileTime;
  if (x.innerStride() != 1 || y.innerStride() != 1 || W.rowStride() != 1) return false;
  const Index rows = W.rows(), columns = W.cols();
  const bool narrow = is_narrow<S>(rows, columns, W.colStride());
  if constexpr (int(Matrix::SizeAtCompileTime) != Eigen::Dynamic) {
    if constexpr (fixed == 2 || fixed == 4)
      if (narrow)
        NarrowStep<S, fixed, DecayKind::none, false>::product(W.data(), columns, x.data(),
                                                              y.data());
    return narrow && (fixed == 2 || fixed == 4);
  } else {
    if (narrow && rows == 1)
      multiply_narrow<S, 1>(W.data(), columns, x.data(), y.data());
    else if (narrow && rows == 2)
      multiply_narrow<S, 2>(W.data(), columns, x.data(), y.data());
    else if (narrow)
      multiply_narrow<S, 4>(W.data(), columns, x.data(), y.data());
    else if (packet > 1 && rows == packet && W.colStride() == rows)
      multiply_narrow<S, packet>(W.data(), columns, x.data(), y.data());
    else
      return false;
    return true;
  }
}

/// y = W x. A W of few rows has a product of its own.
template <class Y, class Matrix, class X>
EIGEN_ALWAYS_INLINE void set_product_with_vector(Y&& y, const Matrix& W, const X& x) {
  if constexpr (is_kernel_product<Matrix, X, std::remove_cvref_t<Y>>())
    if (multiplied_narrow(y, W, x)) return;
  y.noalias() = W * x;
}

}  // namespace fw::detail
