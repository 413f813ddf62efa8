#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <fastweights/core/scratch.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

// Eliminates the columns from begin to end, in themselves alone.
template <class M> void eliminate_own(M& a, Eigen::Index begin, Eigen::Index end) {
  for (Eigen::Index i = begin, left = a.rows() - 1 - i; i < end; ++i, --left) {
    a.col(i).tail(left) /= a(i, i);
    for (Eigen::Index j = i + 1; j < end; ++j) a.col(j).tail(left) -= a(i, j) * a.col(i).tail(left);
  }
}

// Subtracts the columns from i to i + 4 from those on their right. l0 to l3 are copies of them
// below row i + 4, and 0 above it: so they start at a whole register. The entries before one would
// take as long as all the rest.
template <class M, class V>
void subtract_four(M& a, Eigen::Index i, const V& l0, const V& l1, const V& l2, const V& l3) {
  using S = typename M::Scalar;
  constexpr Eigen::Index width = 64 / sizeof(S);  // of the largest register
  const Eigen::Index n = a.rows(), rows = n - (i + 4) / width * width;
  const auto x0 = l0.tail(rows), x1 = l1.tail(rows), x2 = l2.tail(rows), x3 = l3.tail(rows);
  const Eigen::Matrix<S, 4, 4> l = a.template block<4, 4>(i, i);
  for (Eigen::Index j = i + 4; j < n; ++j) {
    auto u = a.col(j).template segment<4>(i);
    const S u0 = u(0), u1 = u(1) - l(1, 0) * u0, u2 = u(2) - l(2, 0) * u0 - l(2, 1) * u1;
    const S u3 = u(3) - l(3, 0) * u0 - l(3, 1) * u1 - l(3, 2) * u2;
    u << u0, u1, u2, u3;
    a.col(j).tail(rows) -= (u0 * x0 + u1 * x1) + (u2 * x2 + u3 * x3);
  }
}

/// Replaces a square matrix by its factors: U, and below the diagonal L, whose own diagonal is 1.
/// There is no pivoting, which positive definite matrices do not need. 2/3 n³ flops. Four columns
/// at a time: the others are then loaded and stored once for four of them.
template <class M> void eliminate(M& a) {
  const Eigen::Index n = a.rows();
  scratch<typename M::Scalar, Eigen::Dynamic, 4>(n, [&](auto&... columns) {
    for (Eigen::Index i = 0; i < n; i += 4) {
      eliminate_own(a, i, std::min(i + 4, n));
      if (i + 4 >= n) return;
      Eigen::Index k = i;
      const auto copy = [&](auto& column) {
        column = a.col(k++);
        column.head(i + 4).setZero();
      };
      (copy(columns), ...);
      subtract_four(a, i, columns...);
    }
  });
}

}  // namespace fw::inline FASTWEIGHTS_ABI::detail
