#pragma once

#include <fastweights/feature_maps/columns.hpp>

/// \file
/// Normalisation of mapped keys and queries, which keeps a delta rule stable.

namespace fw::inline FASTWEIGHTS_ABI {

/// Divides each column by its sum, so that a read returns a weighted mean.
///
///     φ(x) = x / Σ_j x_j
///
/// Shapes: d → d. Throws nothing. Meant for positive features; with mixed signs the sum can cancel
/// and the result grows without bound. Degenerate: where the sum is exactly 0 (a zero column, an
/// all-zero DPFP) the result is 0 and so is the gradient. Accurate as long as the sum itself
/// neither overflows nor is denormal. Schlag, Irie, Schmidhuber 2021, arXiv 2102.11174, section 4.2
/// (sum normalisation).
struct SumNormalise : detail::ColumnwiseMap<SumNormalise> {
  static constexpr std::string_view name = "SumNormalise";

  template <class X, class Y> static void map_column(const X& x, Y& y) {
    const typename X::Scalar sum = x.sum();
    if (detail::real_part(sum) == 0)
      y.setZero();
    else
      y = x / sum;
  }
  template <class X, class Y, class Dy, class Dx>
  static void vjp_column(const X& x, const Y& y, const Dy& dy, Dx& dx) {
    using S = typename X::Scalar;
    const S sum = x.sum();
    if (detail::real_part(sum) == 0) return;
    const S along = dy.cwiseProduct(y).sum();
    dx.array() += (dy.array() - along) / sum;
  }
};

/// Divides each column by its Euclidean length.
///
///     φ(x) = x / √(Σ_j x_j²)
///
/// Shapes: d → d. Throws nothing. Accurate for entries of any size whose length is finite: if their
/// squares would leave the range, they are divided by the largest entry first. Degenerate: a zero
/// column stays 0, with gradient 0. For complex x the sum is that of the squares, not of the
/// absolute squares, which keeps the map analytic.
struct L2Normalise : detail::ColumnwiseMap<L2Normalise> {
  static constexpr std::string_view name = "L2Normalise";

  template <class X, class Y> static void map_column(const X& x, Y& y) {
    const typename X::Scalar norm = length(x);
    if (detail::real_part(norm) == 0)
      y.setZero();
    else
      y = x / norm;
  }
  template <class X, class Y, class Dy, class Dx>
  static void vjp_column(const X& x, const Y& y, const Dy& dy, Dx& dx) {
    using S = typename X::Scalar;
    const S norm = length(x);
    if (detail::real_part(norm) == 0) return;
    const S along = dy.cwiseProduct(y).sum();
    dx += (dy - along * y) / norm;
  }

 private:
  // √(Σ x²); NaN stays NaN.
  template <class X> static typename X::Scalar length(const X& x) {
    using std::sqrt;
    using S = typename X::Scalar;
    if constexpr (std::is_same_v<S, float> || std::is_same_v<S, double>) {
      // Within these bounds no square that counts has left the range of S.
      const S squares = x.squaredNorm();
      constexpr bool is_float = std::is_same_v<S, float>;
      if (squares > S(is_float ? 1e-24 : 1e-270) && squares < S(is_float ? 1e37 : 1e300))
        return std::sqrt(squares);
    }
    const S largest(x.real().cwiseAbs().template maxCoeff<Eigen::PropagateNaN>());
    if (detail::real_part(largest) == 0) return S(0);
    return largest * S(sqrt(S((x.array() / largest).square().sum())));
  }
};

}  // namespace fw
