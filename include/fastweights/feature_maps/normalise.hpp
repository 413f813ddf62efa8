#pragma once

#include <fastweights/feature_maps/feature_map.hpp>

/// \file
/// Normalisation of mapped keys and queries, by which a delta rule stays stable.

namespace fw {

/// Divides each column by its sum, so that what is read is a weighted mean.
///
///     φ(x) = x / Σ_j x_j
///
/// Shapes: d → d. Throws nothing. Meant for positive features; with mixed signs the sum can cancel
/// and the result grows without bound. Degenerate: where the sum is exactly 0 (a zero column, an
/// all-zero DPFP) the result is 0 and so is the gradient. Accurate as long as the sum itself
/// neither overflows nor is denormal. Schlag, Irie, Schmidhuber 2021, arXiv 2102.11174, section 4.2
/// (sum normalisation).
struct SumNormalise : detail::KeepsRows {
  static constexpr std::string_view name = "SumNormalise";

  template <class X, class Y> void map(const X& x, Y& y) const {
    using S = typename X::Scalar;
    for (Index t = 0; t < x.cols(); ++t) {
      const S sum = x.col(t).sum();
      if (detail::real_part(sum) == 0)
        y.col(t).setZero();
      else
        y.col(t) = x.col(t) / sum;
    }
  }
  template <class X, class Y, class Dy, class Dx>
  void vjp(const X& x, const Y& y, const Dy& dy, Dx& dx) const {
    using S = typename X::Scalar;
    for (Index t = 0; t < x.cols(); ++t) {
      const S sum = x.col(t).sum();
      if (detail::real_part(sum) == 0) continue;
      const S along = dy.col(t).cwiseProduct(y.col(t)).sum();
      dx.col(t).array() += (dy.col(t).array() - along) / sum;
    }
  }
};

/// Divides each column by its Euclidean length.
///
///     φ(x) = x / √(Σ_j x_j²)
///
/// Shapes: d → d. Throws nothing. Accurate for entries of any size whose length is finite: they are
/// divided by the largest before they are squared. Degenerate: a zero column stays 0, with gradient
/// 0. For complex x the sum is that of the squares, not of the absolute squares, which keeps the
/// map analytic.
struct L2Normalise : detail::KeepsRows {
  static constexpr std::string_view name = "L2Normalise";

  template <class X, class Y> void map(const X& x, Y& y) const {
    for (Index t = 0; t < x.cols(); ++t) {
      const auto norm = length(x.col(t));
      if (detail::real_part(norm) == 0)
        y.col(t).setZero();
      else
        y.col(t) = x.col(t) / norm;
    }
  }
  template <class X, class Y, class Dy, class Dx>
  void vjp(const X& x, const Y& y, const Dy& dy, Dx& dx) const {
    using S = typename X::Scalar;
    for (Index t = 0; t < x.cols(); ++t) {
      const S norm = length(x.col(t));
      if (detail::real_part(norm) == 0) continue;
      const S along = dy.col(t).cwiseProduct(y.col(t)).sum();
      dx.col(t) += (dy.col(t) - along * y.col(t)) / norm;
    }
  }

 private:
  // √(Σ x²), whose squares stay in range; NaN stays NaN.
  template <class X> static typename X::Scalar length(const X& x) {
    using std::sqrt;
    using S = typename X::Scalar;
    const S largest(x.real().cwiseAbs().template maxCoeff<Eigen::PropagateNaN>());
    if (detail::real_part(largest) == 0) return S(0);
    return largest * S(sqrt(S((x.array() / largest).square().sum())));
  }
};

}  // namespace fw
