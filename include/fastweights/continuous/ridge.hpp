#pragma once

#include <Eigen/Cholesky>
#include <cmath>
#include <fastweights/continuous/basis.hpp>
#include <fastweights/core/errors.hpp>
#include <fastweights/math/products.hpp>
#include <string>
#include <vector>

/// \file
/// Ridge regression of a signal on a basis: the positions of the targets, and the operator that
/// computes the coefficients from the targets.

namespace fw::inline FASTWEIGHTS_ABI {

/// Options of the regression: the ridge penalty, and where its targets lie.
struct Regression {
  double ridge = 0;      ///< λ of the penalty λ‖B‖²; 0: the memory chooses it
  double padding = 0.5;  ///< length of the zero targets beyond each end of [0, 1]; 0 for none
  bool parity = false;   ///< use the grids of the published code instead of cell centres
};

namespace detail {

/// The positions of one regression.
struct Targets {
  std::vector<double> past;        ///< M samples of the past signal, on (0, τ]
  std::vector<double> new_tokens;  ///< L new tokens, on [τ, 1]
  std::vector<double> zeros;       ///< zero targets, outside [0, 1]
};

/// Targets at cell centres: M cells on [0, τ], L cells on [τ, 1], and zero targets beyond both ends
/// in cells of width 1/(M + L). Without zero targets the signal is overweighted at its ends, where
/// half of a Gaussian lies outside the targets.
inline Targets cell_centres(Index past, Index new_tokens, double tau, double padding) {
  Targets to;
  const auto put = [](std::vector<double>& list, Index count, double from, double length) {
    for (Index i = 0; i < count; ++i)
      list.push_back(from + length * (static_cast<double>(i) + 0.5) / static_cast<double>(count));
  };
  put(to.past, past, 0, tau);
  put(to.new_tokens, new_tokens, tau, 1 - tau);
  const auto each_side =
      static_cast<Index>(std::ceil(padding * static_cast<double>(past + new_tokens) - 1e-9));
  put(to.zeros, each_side, -padding, padding);
  put(to.zeros, each_side, 1, padding);
  return to;
}

/// The positions of the published code. The first chunk has the middle L points of a grid over
/// [−½, 3/2] with 2L points (2L − 1 for odd L). Later chunks have samples at τ m/M, tokens at
/// τ + (1−τ) l/L and zero targets at the outer points of a grid of 2(L + M) points.
inline Targets published_positions(Index past, Index new_tokens, double tau) {
  Targets to;
  const auto grid = [](Index count, double step) {
    std::vector<double> points(static_cast<std::size_t>(count));
    const double from = -0.5 + step, length = 2 - 2 * step;
    for (Index i = 0; i < count; ++i)
      points[static_cast<std::size_t>(i)] =
          count > 1 ? from + length * static_cast<double>(i) / static_cast<double>(count - 1)
                    : from;
    return points;
  };
  if (past == 0) {
    const bool odd = new_tokens % 2 != 0;
    const Index count = odd ? 2 * new_tokens - 1 : 2 * new_tokens,
                before = (count - new_tokens) / 2;
    const auto points = grid(count, (odd ? 1 : 0.5) / static_cast<double>(new_tokens));
    for (Index i = 0; i < count; ++i) {
      const bool token = i >= before && i < before + new_tokens;
      (token ? to.new_tokens : to.zeros).push_back(points[static_cast<std::size_t>(i)]);
    }
    return to;
  }
  for (Index m = 1; m <= past; ++m)
    to.past.push_back(tau * static_cast<double>(m) / static_cast<double>(past));
  for (Index l = 1; l <= new_tokens; ++l)
    to.new_tokens.push_back(tau +
                            (1 - tau) * static_cast<double>(l) / static_cast<double>(new_tokens));
  for (const double t :
       grid(2 * (new_tokens + past), 1 / static_cast<double>(2 * new_tokens + past)))
    if (t < 0 || t > 1) to.zeros.push_back(t);
  return to;
}

template <class Basis>
Eigen::MatrixXd basis_at(const Basis& basis, const std::vector<double>& positions) {
  Eigen::MatrixXd psi(basis.size(), static_cast<Index>(positions.size()));
  for (Index i = 0; i < psi.cols(); ++i)
    basis.evaluate(positions[static_cast<std::size_t>(i)], psi.col(i));
  return psi;
}

// One step of refinement of the solution of (ΨΨᵀ + λI) X = [the first columns of Ψ].
inline void refine_ridge(const Eigen::LLT<Eigen::MatrixXd>& factor, const Eigen::MatrixXd& psi,
                         double ridge, Eigen::MatrixXd& solution) {
  Eigen::MatrixXd misfit(psi.cols(), solution.cols());
  set_product(misfit, psi.transpose(), solution, one_block);
  misfit = -misfit;
  misfit.diagonal().array() += 1;
  Eigen::MatrixXd residual = -ridge * solution;
  add_product(residual, psi, misfit, one_block);
  factor.solveInPlace(residual);
  solution += residual;
}

}  // namespace detail

/// Computes coefficients from targets, B = X_past G_past + X_new G_new:
///
///     G = Ψᵀ (ΨΨᵀ + λI)⁻¹,   Ψ the basis at the positions of all targets, including zero targets
///
/// Computed in double by Cholesky and applied in S. Computed in float, it would have errors of 5 to
/// 11 % at the published sizes. In double the errors at these sizes are below 1e-8 for λ ≥ 1e-6. A
/// memory with constant sample positions has B ← B (Ψ_samples G_past) + X_new G_new, and stores the
/// product in brackets in `past`.
template <class S> struct RidgeOperator {
  Eigen::Matrix<S, Dynamic, Dynamic> past;        ///< M×N, or N×N
  Eigen::Matrix<S, Dynamic, Dynamic> new_tokens;  ///< L×N
};

/// The operator in double. Cost: N² (P + 2 (M + L) + N/3) flops for P targets, zero targets
/// included. If the normal equations are nearly singular (a condition number above 1e8, as with a
/// small λ), it is refined by one step for (4 P N + 2 N²) (M + L) more flops: the residual comes
/// from Ψ itself, because the rounding of ΨΨᵀ has cost half of the digits. Björck 1987, Linear
/// Algebra and its Applications 88/89 (corrected seminormal equations).
template <class Basis>
RidgeOperator<double> ridge_operator(const Basis& basis, const detail::Targets& targets,
                                     double ridge) {
  std::vector<double> positions = targets.past;
  for (const auto* more : {&targets.new_tokens, &targets.zeros})
    positions.insert(positions.end(), more->begin(), more->end());
  const Eigen::MatrixXd psi = detail::basis_at(basis, positions);
  const auto past = static_cast<Index>(targets.past.size()),
             new_tokens = static_cast<Index>(targets.new_tokens.size());
  Eigen::MatrixXd gram = Eigen::MatrixXd::Zero(basis.size(), basis.size());
  gram.diagonal().setConstant(ridge);
  if (psi.cols() > 0)  // Eigen 3.4 divides by the number of columns
    gram.selfadjointView<Eigen::Lower>().rankUpdate(psi);
  const Eigen::LLT<Eigen::MatrixXd> factor(gram);
  if (factor.info() != Eigen::Success)
    detail::throw_invalid(
        {"ridge_operator: the normal equations are not positive definite; "
         "choose a larger ridge than ",
         std::to_string(ridge)});
  Eigen::MatrixXd solution = psi.leftCols(past + new_tokens);
  if (solution.cols() == 0) return {solution.transpose(), solution.transpose()};
  factor.solveInPlace(solution);
  if (factor.rcond() < 1e-8) detail::refine_ridge(factor, psi, ridge, solution);
  return {solution.leftCols(past).transpose(), solution.rightCols(new_tokens).transpose()};
}

}  // namespace fw
