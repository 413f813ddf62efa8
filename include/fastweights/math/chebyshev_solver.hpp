#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <fastweights/core/scratch.hpp>
#include <fastweights/math/products.hpp>
#include <limits>

namespace fw::inline FASTWEIGHTS_ABI {

/// Chebyshev iteration for (G + λI) y = q with λ = ridge · ‖G‖_F and a positive semidefinite G,
/// with gradients, also of λ. All eigenvalues are between λ and λ + ‖G‖_F. So the weights of the
/// steps are the same for every G, and a step needs no inner product. With x = ‖G‖_F y, r = ridge,
/// ρ = 1 / (2r + 1) and σ = 2ρ:
///
///     w_{−1} = 2      w_i = 1 / (1 − ρ² w_{i−1} / 4)      x_{−1} = 0      x_0 = σ q
///     x_{i+1} = w_i (x_i + σ (q − r x_i − G x_i / ‖G‖_F)) − (w_i − 1) x_{i−1}
///
/// A step costs 2 d² flops and multiplies the error by (1 − √(1 − ρ²)) / ρ, .75 for a ridge of .02.
/// For G = 0, or if its largest entry is below 1e-31 in float and 1e-292 in double, y is 0, the
/// shortest of all least-squares solutions. Complex numbers are not conjugated.
struct ChebyshevSolver {
  Eigen::Index iterations = 30;  ///< at least 0
  double ridge = 0.02;           ///< above 0

  /// Solves for the columns of `q`, which may have a G each: calls f(x) with x = ‖G‖_F y.
  /// multiply(x, to) sets `to` and returns a number c, so that c · to is G x / ‖G‖_F.
  template <class Q, class M, class F>
  void with_scaled_solution(const Q& q, const M& multiply, const F& f) const {
    using S = typename Q::Scalar;
    const Eigen::Index width = q.cols();
    matrix_scratch<S>(q.rows(), 4 * width, [&](auto& columns) {
      iterate(q, columns, 2, multiply, [](Eigen::Index, double) {});
      f(columns.middleCols(iterations % 2 * width, width));
    });
  }

  /// Calls f(y). Matrices of up to 128 KiB need no heap.
  template <class G, class Q, class F>
  void with_solution(const G& g, const Q& q, const F& f) const {
    using S = typename G::Scalar;
    const S inverse = inverse_norm(g);
    with_scaled_solution(q, product_with(g, inverse), [&](auto x) {
      x *= inverse;
      f(x.col(0));
    });
  }

  /// Calls f(y, vjp). vjp(dy, dG, dq) adds the gradients.
  template <class G, class Q, class F>
  void with_gradients(const G& g, const Q& q, const F& f) const {
    using S = typename G::Scalar;
    const S inverse = inverse_norm(g);
    const Eigen::Index kept = std::max<Eigen::Index>(2, iterations + 1);
    scratch<double, Eigen::Dynamic>(kept, [&](auto& weights) {
      matrix_scratch<S, 2>(q.rows(), kept + 2, [&](auto& x, auto& p) {
        iterate(q, x, kept, product_with(g, inverse),
                [&](Eigen::Index i, double w) { weights[i] = w; });
        auto y = x.col(kept);
        y = inverse * x.col(iterations);
        f(y,
          [&](const auto& dy, auto& dg, auto& dq) { vjp(g, inverse, weights, x, p, dy, dg, dq); });
      });
    });
  }

  /// 1 / ‖G‖_F, or 0 if G is too small to divide by its norm.
  template <class G> static typename G::Scalar inverse_norm(const G& g) {
    using S = typename G::Scalar;
    using Real = typename Eigen::NumTraits<S>::Real;
    const S square = g.cwiseProduct(g).sum();
    if (!is_outside(square)) return S(1) / Eigen::numext::sqrt(square);
    const Real largest = g.real().cwiseAbs().maxCoeff();
    if (largest < least<Real> / std::numeric_limits<Real>::epsilon()) return S(0);
    const auto small = g / S(largest);
    return S(1) / (S(largest) * Eigen::numext::sqrt(S(small.cwiseProduct(small).sum())));
  }
  /// True if squares of the entries of a matrix may leave the range of S, from their sum.
  template <class S> static bool is_outside(const S& square) {
    using Real = typename Eigen::NumTraits<S>::Real;
    constexpr Real rounding = std::numeric_limits<Real>::epsilon();
    const Real size = Eigen::numext::real(square);
    return size < least<Real> / (rounding * rounding) || size > std::numeric_limits<Real>::max();
  }

 private:
  template <class Real> static constexpr Real least = std::numeric_limits<Real>::min();

  double rho() const { return 1 / (2 * ridge + 1); }
  double sigma() const { return 2 * rho(); }
  double keep() const { return 1 - sigma() * ridge; }  // x + σ (q − r x) = keep x + σ q

  template <class G, class S> static auto product_with(const G& g, const S& inverse) {
    return [&g, inverse](const auto& x, auto& to) {
      detail::set_product(to, g, x);
      return inverse;
    };
  }

  // `columns` has room for `kept` iterates, the last two or all, and then for q and a product.
  // Calls keep_weight(i, w_i).
  template <class Q, class X, class M, class F>
  void iterate(const Q& q, X& columns, Eigen::Index kept, const M& multiply,
               const F& keep_weight) const {
    using S = typename Q::Scalar;
    using Eigen::Index;
    using Matrix = Eigen::Map<Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic>>;
    using Entries = Eigen::Map<Eigen::Matrix<S, Eigen::Dynamic, 1>>;
    const Index size = q.size();
    S* const data = columns.data();
    const auto at = [&](Index i) { return Entries(data + i % kept * size, size); };
    Entries source(data + kept * size, size);
    Matrix product(source.data() + size, q.rows(), q.cols());
    Matrix(source.data(), q.rows(), q.cols()) = S(sigma()) * q;
    at(0) = source;
    at(1).setZero();
    double w = 2;
    for (Index i = 0; i < iterations; ++i) {
      w = 1 / (1 - rho() * rho() * w / 4);
      keep_weight(i, w);
      const auto now = at(i), last = at(i == 0 ? 1 : i - 1);
      const S scale = multiply(Matrix(data + i % kept * size, q.rows(), q.cols()), product);
      at(i + 1) = S(w * keep()) * now + S(w) * source -
                  (S(w * sigma()) * scale) * Entries(product.data(), size) - S(w - 1) * last;
    }
  }

  // p_i is the gradient of q in step i. At a fixed norm, dG is −Σ p_i x_iᵀ / ‖G‖. That of the norm
  // follows from y(c G) = y(G) / c: the sum of G ∘ dG is −dy·y.
  template <class G, class S, class W, class X, class P, class DY, class DG, class DQ>
  void vjp(const G& g, const S& inverse, const W& weights, const X& x, P& columns, const DY& dy,
           DG& dg, DQ& dq) const {
    using Eigen::Index;
    auto p = columns.leftCols(iterations);
    auto product = columns.col(iterations), dx = columns.col(iterations + 1),
         dlast = columns.col(iterations + 2);
    S norm_part = -inverse * dy.cwiseProduct(x.col(iterations)).sum();
    dx = inverse * dy;
    dlast.setZero();
    for (Index i = iterations; i-- > 0;) {
      const double w = weights[i];
      p.col(i) = S(w * sigma()) * dx;
      detail::set_product(product, g.transpose(), p.col(i));
      product *= inverse;
      norm_part += product.cwiseProduct(x.col(i)).sum();
      dlast += S(w * keep()) * dx - product;
      dx *= -S(w - 1);
      dx.swap(dlast);
    }
    dq += p.rowwise().sum() + S(sigma()) * dx;
    p *= -inverse;
    detail::add_product(dg, p, x.leftCols(iterations).transpose());
    dg += (norm_part * inverse * inverse) * g;
  }
};

}  // namespace fw
