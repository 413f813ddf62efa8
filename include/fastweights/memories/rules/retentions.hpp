#pragma once

#include <cmath>
#include <fastweights/core/scratch.hpp>
#include <fastweights/math/activations.hpp>
#include <fastweights/memories/rules/normaliser.hpp>
#include <type_traits>

/// \file
/// Retentions of MirasMemory: what W is, given the sum A of decayed gradient steps. A retention
/// never stores W. It multiplies a vector by W, and has the gradients of that product.
///
/// | retention | W | memory |
/// |---|---|---|
/// | `PlainRetention` | A | Yaad |
/// | `FourNormRetention` | A / ‖A‖₄², 0 for A = 0 | Moneta |
/// | `SoftmaxRetention` | the softmax of every row of A | Memora |
///
/// Behrouz, Razaviyayn, Zhong, Mirrokni 2025, arXiv 2504.13173, section 5.

namespace fw::inline FASTWEIGHTS_ABI {

/// W = A: Yaad.
struct PlainRetention {
  /// y = W x.
  template <class A, class X, class Y> static void product(const A& a, const X& x, Y& y) {
    y.noalias() = a * x;
  }
  /// Adds the gradients of A and x.
  template <class A, class X, class Dy, class DA, class DX>
  static void product_vjp(const A& a, const X& x, const Dy& dy, DA& da, DX& dx) {
    detail::product_vjp(a, x, dy, da, dx);
  }
};

/// Every sum over A is of A divided by its largest entry, so that fourth powers do not overflow.
struct FourNormRetention {
  /// y = W x.
  template <class A, class X, class Y> static void product(const A& a, const X& x, Y& y) {
    const Scale scale(a);
    y.noalias() = a * x;
    y *= scale.per_entry;
    y *= scale.per_norm;
  }
  /// Adds the gradients of A and x.
  template <class A, class X, class Dy, class DA, class DX>
  static void product_vjp(const A& a, const X& x, const Dy& dy, DA& da, DX& dx) {
    using S = typename A::Scalar;
    const Scale scale(a);
    scratch<S, A::RowsAtCompileTime>(a.rows(), [&](auto& y) {
      y.noalias() = a * x;
      y *= scale.per_entry;
      const S along =
          S(2) * scale.per_entry * scale.per_norm * scale.four_norm * y.cwiseProduct(dy).sum();
      da.array() -= along * (scale.per_entry * a.array()).cube();
      y = scale.per_entry * dy;
      y *= scale.per_norm;
      detail::product_vjp(a, x, y, da, dx);
    });
  }

 private:
  // With m the largest |entry|: 1/m, 1/(m ‖A/m‖₄²) and 1/‖A/m‖₄⁴.
  template <class S> struct Scales { S per_entry = S(0), per_norm = S(0), four_norm = S(0); };
  template <class A> struct Scale : Scales<typename A::Scalar> {
    explicit Scale(const A& a) {
      using S = typename A::Scalar;
      const S largest(a.cwiseAbs().maxCoeff());
      if (detail::real_part(largest) == 0) return;
      this->per_entry = S(1) / largest;
      const S fourth = (this->per_entry * a.array()).square().square().sum();
      using std::sqrt;
      this->per_norm = this->per_entry / S(sqrt(fourth));
      this->four_norm = S(1) / fourth;
    }
  };
};

/// The largest entry of every row is subtracted first, so that W is finite for every finite A.
struct SoftmaxRetention {
  /// y = W x.
  template <class A, class X, class Y> static void product(const A& a, const X& x, Y& y) {
    using S = typename A::Scalar;
    scratch<S, A::RowsAtCompileTime, 3>(a.rows(), [&](auto& top, auto& total, auto& weights) {
      average(a, x, top, total, weights, y);
    });
  }
  /// Adds the gradients of A and x.
  template <class A, class X, class Dy, class DA, class DX>
  static void product_vjp(const A& a, const X& x, const Dy& dy, DA& da, DX& dx) {
    using S = typename A::Scalar;
    scratch<S, A::RowsAtCompileTime, 4>(
        a.rows(), [&](auto& top, auto& total, auto& weights, auto& y) {
          average(a, x, top, total, weights, y);
          for (Eigen::Index j = 0; j < a.cols(); ++j) {
            weights.array() = (a.col(j) - top).array().exp() / total.array() * dy.array();
            dx[j] += weights.sum();
            da.col(j).array() += weights.array() * (x[j] - y.array());
          }
        });
  }

 private:
  // y_i = Σ_j e^{A_ij − top_i} x_j / total_i, column by column.
  template <class A, class X, class V, class Y>
  static void average(const A& a, const X& x, V& top, V& total, V& weights, Y& y) {
    row_maxima(a, top);
    total.setZero();
    y.setZero();
    for (Eigen::Index j = 0; j < a.cols(); ++j) {
      weights.array() = (a.col(j) - top).array().exp();
      total += weights;
      y += x[j] * weights;
    }
    y.array() /= total.array();
  }
  template <class A, class V> static void row_maxima(const A& a, V& top) {
    if constexpr (std::is_floating_point_v<typename A::Scalar>) {
      top = a.rowwise().maxCoeff();
    } else {
      top = a.col(0);
      for (Eigen::Index j = 1; j < a.cols(); ++j)
        for (Eigen::Index i = 0; i < a.rows(); ++i)
          if (detail::real_part(a(i, j)) > detail::real_part(top[i])) top[i] = a(i, j);
    }
  }
};

}  // namespace fw
