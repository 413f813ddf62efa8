#pragma once

#include <Eigen/Core>
#include <fastweights/core/scratch.hpp>
#include <fastweights/math/elimination.hpp>

/// \file
/// Solvers of (G + diag(λ)) x = q for a positive definite matrix G + diag(λ), with gradients. They
/// take complex numbers without conjugation, and no heap for matrices of up to 128 KiB.

namespace fw::inline FASTWEIGHTS_ABI {

/// Elimination without pivoting, which positive definite matrices do not need. 2/3 d³ flops.
struct ExactSolver {
  /// Calls f(x, vjp). vjp(dx, dG, dλ, dq) adds the gradients, with p = (G + diag(λ))⁻ᵀ dx: dq += p,
  /// dG −= p xᵀ, dλ −= p ⊙ x. It replaces dx by p.
  template <class G, class L, class Q, class F>
  void with_solution(const G& g, const L& lambda, const Q& q, const F& f) const {
    using S = typename G::Scalar;
    factorised(g, lambda, [&](const auto& lu) {
      scratch<S, Q::RowsAtCompileTime>(g.rows(), [&](auto& x) {
        x = q;
        lu.template triangularView<Eigen::UnitLower>().solveInPlace(x);
        lu.template triangularView<Eigen::Upper>().solveInPlace(x);
        f(x, [&](auto& dx, auto& dg, auto& dlambda, auto& dq) {
          lu.transpose().template triangularView<Eigen::Lower>().solveInPlace(dx);
          lu.transpose().template triangularView<Eigen::UnitUpper>().solveInPlace(dx);
          dq += dx;
          dg.noalias() -= dx * x.transpose();
          dlambda -= dx.cwiseProduct(x);
        });
      });
    });
  }

  /// The smallest pivot of G + diag(λ), of the real parts. Where it is not far above d units of
  /// rounding of the largest entry, it is made of rounding errors, and so is x.
  template <class G, class L> double smallest_pivot(const G& g, const L& lambda) const {
    double smallest = 0;
    factorised(g, lambda, [&](const auto& lu) {
      smallest = static_cast<double>(lu.diagonal().real().minCoeff());
    });
    return smallest;
  }

 private:
  // Calls f with L below the diagonal and U above it.
  template <class G, class L, class F>
  static void factorised(const G& g, const L& lambda, const F& f) {
    using S = typename G::Scalar;
    const Eigen::Index n = g.rows();
    matrix_scratch<S>(n, n, [&](auto& lu) {
      lu = g;
      lu.diagonal() += lambda;
      detail::eliminate(lu);
      f(lu);
    });
  }
};

/// Conjugate gradients, from x = q / (diag(G) + λ): 2 d² flops an iteration. After d iterations the
/// solution is exact up to rounding and ε, which is added to both denominators. The gradients are
/// those of the iterations.
struct ConjugateGradients {
  Eigen::Index iterations = 30;  ///< steps of the solver
  double epsilon = 1e-5;

  /// As ExactSolver::with_solution. dx is changed.
  template <class G, class L, class Q, class F>
  void with_solution(const G& g, const L& lambda, const Q& q, const F& f) const {
    with_history(g, lambda, q, [&](const auto& h) {
      f(h.x, [&](auto& dx, auto& dg, auto& dlambda, auto& dq) {
        vjp(h, g, lambda, q, dx, dg, dlambda, dq);
      });
    });
  }

 private:
  // Columns i of the residuals r, the directions p and the products A p of iteration i.
  template <class M, class V> struct History {
    using Scalar = typename M::Scalar;
    M &r, &p, &products;
    V& x;
  };
  template <class M, class V> static History<M, V> history(M& r, M& p, M& products, V& x) {
    return {r, p, products, x};
  }

  template <class X, class Y> static auto sum(const X& x, const Y& y) {
    return x.cwiseProduct(y).sum();
  }
  // y = (Gᵀ + diag(λ)) x
  template <class G, class L, class X, class Y>
  static void multiply(const G& g, const L& lambda, const X& x, Y&& y) {
    y.noalias() = g.transpose() * x;
    y += lambda.cwiseProduct(x);
  }
  template <class H> auto step(const H& h, Eigen::Index i) const {
    using S = typename H::Scalar;
    return S(sum(h.r.col(i), h.r.col(i)) / (sum(h.p.col(i), h.products.col(i)) + S(epsilon)));
  }

  template <class G, class L, class Q, class F>
  void with_history(const G& g, const L& lambda, const Q& q, const F& f) const {
    using S = typename G::Scalar;
    matrix_scratch<S, 3>(g.rows(), iterations + 1, [&](auto& r, auto& p, auto& products) {
      scratch<S, Q::RowsAtCompileTime>(g.rows(), [&](auto& x) {
        const auto h = history(r, p, products, x);
        h.x = q.cwiseQuotient(g.diagonal() + lambda);
        multiply(g, lambda, h.x, h.products.col(0));
        h.r.col(0) = q - h.products.col(0);
        h.p.col(0) = h.r.col(0);
        for (Eigen::Index i = 0; i < iterations; ++i) iterate(h, g, lambda, i);
        f(h);
      });
    });
  }
  template <class H, class G, class L>
  void iterate(const H& h, const G& g, const L& lambda, Eigen::Index i) const {
    using S = typename G::Scalar;
    multiply(g, lambda, h.p.col(i), h.products.col(i));
    const S length = step(h, i), old = sum(h.r.col(i), h.r.col(i));
    h.x += length * h.p.col(i);
    h.r.col(i + 1) = h.r.col(i) - length * h.products.col(i);
    const S ratio = sum(h.r.col(i + 1), h.r.col(i + 1)) / (old + S(epsilon));
    h.p.col(i + 1) = h.r.col(i + 1) + ratio * h.p.col(i);
  }

  template <class H, class G, class L, class Q, class DX, class DG, class DL, class DQ>
  void vjp(const H& h, const G& g, const L& lambda, const Q& q, DX& dx, DG& dg, DL& dlambda,
           DQ& dq) const {
    using S = typename G::Scalar;
    scratch<S, Q::RowsAtCompileTime, 4>(
        g.rows(), [&](auto& dr, auto& dp, auto& dproduct, auto& diagonal) {
          dr.setZero();
          dp.setZero();
          S dsquare(0);  // of ‖r_{i+1}‖²
          for (Eigen::Index i = iterations; i-- > 0;) {
            const auto r = h.r.col(i), next = h.r.col(i + 1), p = h.p.col(i);
            const auto product = h.products.col(i);
            const S square = sum(r, r), next_square = sum(next, next), length = step(h, i);
            // p_{i+1} = r_{i+1} + ratio p_i, ratio = ‖r_{i+1}‖² / (‖r_i‖² + ε)
            const S inverse = S(1) / (square + S(epsilon)), dratio = sum(dp, p);
            dr += dp + S(2) * (dsquare + dratio * inverse) * next;
            dp *= next_square * inverse;
            // x += length p_i, r_{i+1} = r_i − length A p_i
            const S dlength = sum(dx, p) - sum(dr, product);
            const S curvature = sum(p, product) + S(epsilon);
            const S dcurvature = -dlength * length / curvature;
            dsquare = dlength / curvature - dratio * next_square * inverse * inverse;
            dproduct = dcurvature * p - length * dr;
            dp += length * dx + dcurvature * product;
            add_product_vjp(g, lambda, p, dproduct, dp, dg, dlambda);
          }
          dr += dp + S(2) * dsquare * h.r.col(0);
          // r_0 = q − A x_0, x_0 = q / (diag(G) + λ)
          dq += dr;
          diagonal = g.diagonal() + lambda;
          dproduct = -dr;
          dp = q.cwiseQuotient(diagonal);
          add_product_vjp(g, lambda, dp, dproduct, dx, dg, dlambda);
          dx = dx.cwiseQuotient(diagonal);
          dq += dx;
          dproduct = dx.cwiseProduct(dp);
          dg.diagonal() -= dproduct;
          dlambda -= dproduct;
        });
  }
  // Gradients of y = (Gᵀ + diag(λ)) x. Adds to all gradients.
  template <class G, class L, class X, class DY, class DX, class DG, class DL>
  static void add_product_vjp(const G& g, const L& lambda, const X& x, const DY& dy, DX& dx, DG& dg,
                              DL& dlambda) {
    dx.noalias() += g * dy;
    dx += lambda.cwiseProduct(dy);
    dg.noalias() += x * dy.transpose();
    dlambda += x.cwiseProduct(dy);
  }
};

}  // namespace fw
