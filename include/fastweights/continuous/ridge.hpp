#pragma once

#include <Eigen/Cholesky>
#include <cmath>
#include <fastweights/continuous/basis.hpp>
#include <string>
#include <vector>

/// \file
/// Ridge regression of a signal on a basis: the positions of the targets, and the operator that
/// takes targets to coefficients.

namespace fw {

/// How a chunk of tokens and the resampled past come to lie on [0, 1], and how they are regressed.
struct Regression {
  double ridge = 1;      ///< λ of the penalty λ‖B‖²
  double padding = 0.5;  ///< how far zero targets reach beyond both ends of [0, 1]; 0 for none
  bool parity = false;   ///< the grids of the published code instead of cell centres
};

namespace detail {

/// The positions of one regression.
struct Targets {
  std::vector<double> past;   ///< M samples of the old signal, on (0, τ]
  std::vector<double> fresh;  ///< L new tokens, on [τ, 1]
  std::vector<double> zeros;  ///< targets that are zero, outside [0, 1]
};

/// M + L targets in the middles of as many cells, on [0, τ] and on [τ, 1]; the zeros beyond in
/// cells of width 1/(M + L). Without padding the ends of the signal, where half a Gaussian has no
/// targets to hold it, are overweighted.
inline Targets cell_centres(Index past, Index fresh, double tau, double padding) {
  Targets to;
  const auto put = [](std::vector<double>& list, Index count, double from, double length) {
    for (Index i = 0; i < count; ++i)
      list.push_back(from + length * (static_cast<double>(i) + 0.5) / static_cast<double>(count));
  };
  put(to.past, past, 0, tau);
  put(to.fresh, fresh, tau, 1 - tau);
  const auto each_side =
      static_cast<Index>(std::ceil(padding * static_cast<double>(past + fresh) - 1e-9));
  put(to.zeros, each_side, -padding, padding);
  put(to.zeros, each_side, 1, padding);
  return to;
}

/// As the published code places them: the first chunk on the middle L of a grid over [−½, 3/2]
/// (2L points, for odd L 2L − 1), later ones at τ m/M and τ + (1−τ) l/L between the outer points of
/// a grid of 2(L + M) points.
inline Targets published_positions(Index past, Index fresh, double tau) {
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
    const bool odd = fresh % 2 != 0;
    const Index count = odd ? 2 * fresh - 1 : 2 * fresh, before = (count - fresh) / 2;
    const auto points = grid(count, (odd ? 1 : 0.5) / static_cast<double>(fresh));
    for (Index i = 0; i < count; ++i) {
      const bool token = i >= before && i < before + fresh;
      (token ? to.fresh : to.zeros).push_back(points[static_cast<std::size_t>(i)]);
    }
    return to;
  }
  for (Index m = 1; m <= past; ++m)
    to.past.push_back(tau * static_cast<double>(m) / static_cast<double>(past));
  for (Index l = 1; l <= fresh; ++l)
    to.fresh.push_back(tau + (1 - tau) * static_cast<double>(l) / static_cast<double>(fresh));
  for (const double t : grid(2 * (fresh + past), 1 / static_cast<double>(2 * fresh + past)))
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

}  // namespace detail

/// Takes targets to coefficients, B = X_past G_past + X_fresh G_fresh:
///
///     G = Ψᵀ (ΨΨᵀ + λI)⁻¹,   Ψ the basis at the positions of all targets, the zeros included
///
/// Computed in double by Cholesky (in float the published sizes are 5 to 11 % off), applied in S. A
/// memory whose samples are always the same has B ← B (Ψ_samples G_past) + X_fresh G_fresh, and
/// keeps the product in brackets for `past`.
template <class S> struct RidgeOperator {
  Eigen::Matrix<S, Dynamic, Dynamic> past;   ///< M×N, or N×N
  Eigen::Matrix<S, Dynamic, Dynamic> fresh;  ///< L×N
};

/// The operator in double. Cost: N² (P + N/3) multiplications for P targets.
template <class Basis>
RidgeOperator<double> ridge_operator(const Basis& basis, const detail::Targets& targets,
                                     double ridge) {
  const Eigen::MatrixXd past = detail::basis_at(basis, targets.past);
  const Eigen::MatrixXd fresh = detail::basis_at(basis, targets.fresh);
  const Eigen::MatrixXd zeros = detail::basis_at(basis, targets.zeros);
  Eigen::MatrixXd gram = Eigen::MatrixXd::Zero(basis.size(), basis.size());
  gram.diagonal().setConstant(ridge);
  for (const Eigen::MatrixXd* psi : {&past, &fresh, &zeros})
    if (psi->cols() > 0)  // Eigen 3.4 divides by the columns
      gram.selfadjointView<Eigen::Lower>().rankUpdate(*psi);
  const Eigen::LLT<Eigen::MatrixXd> factor(gram);
  if (factor.info() != Eigen::Success)
    throw std::invalid_argument(
        "ridge_operator: the normal equations are not positive definite; "
        "choose a larger ridge than " +
        std::to_string(ridge));
  const auto solved = [&](const Eigen::MatrixXd& psi) -> Eigen::MatrixXd {
    if (psi.cols() == 0) return psi.transpose();  // Eigen refers to its first number
    return factor.solve(psi).transpose();
  };
  return {solved(past), solved(fresh)};
}

}  // namespace fw
