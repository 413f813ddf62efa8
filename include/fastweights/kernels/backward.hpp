#pragma once

#include <fastweights/kernels/backward_panels.hpp>
#include <fastweights/kernels/panels.hpp>

/// \file
/// Gradients of the sum rule and the delta rule over a whole sequence, from the first state and,
/// for the delta rule, u_t = v_t − W_{t−1} k_t of the forward pass. With e_t = β_t u_t and G_t the
/// gradient of W_t, three passes over the tokens each take one matrix along:
///
///     back:     G_t = Ḡ_{t+1} + dy_t q_tᵀ,   c_t = G_t k_t,   Ḡ_t = G_t − β_t c_t k_tᵀ
///     onwards:  W_t = W_{t−1} + e_t k_tᵀ,   dq_t = W_tᵀ dy_t,   dk_t −= β_t W_{t−1}ᵀ c_t
///     back:     dk_t += β_t G_tᵀ u_t
///     and       dv_t = β_t c_t,   dβ_t = c_t·u_t
///
/// The latter two have the matrix transposed, so that their products run along the lanes as well.
/// The sum rule is the same with e = v and without c in G and dk. Cost: three times the scan.

namespace fw::detail {
inline namespace FASTWEIGHTS_KERNELS {

/// dv_t += β_t c_t, dβ_t += c_t·u_t
template <class S> void correct(const typename BackwardPair<S>::One& one, Index dv) {
  using Vector = Eigen::Map<Eigen::Array<S, Eigen::Dynamic, 1>>;
  const Vector c(one.c, dv);
  Vector(one.dv, dv) += one.beta * c;
  *one.dbeta += (c * Eigen::Map<const Eigen::Array<S, Eigen::Dynamic, 1>>(one.u, dv)).sum();
}

/// From G of the final state to that of the first, in place, and to those of the tokens. `W` is the
/// first state.
template <bool Corrects, class Matrix, class S>
void backward_pairs(const Matrix& W, Matrix& G, const BackwardTokens<S>& t, Index steps) {
  struct Errors;
  struct Transposed;
  struct Answered;
  const Index dv = W.rows(), dk = W.cols();
  S* const answered = thread_room<S, Answered>(4 * ((steps + 1) / 2));
  Panels<S, Transposed> transposed(dk, dv);
  Panels<S, Errors> errors(dv, dk);
  transposed.copy_in_transposed(G.data(), G.colStride());
  errors.copy_in(G.data(), G.colStride());
  for_pairs(t, steps, true, [&](BackwardPair<S>* pairs, Index count, Index first) {
    for (Index i = 0; i < count; ++i) {
      const auto &one = pairs[i].one, &two = pairs[i].two;
      dot_products({one.k, one.k, one.k, two.k}, {two.k, one.q, two.q, two.q}, dk, pairs[i].met);
    }
    errors.each([&](auto packets, const auto& p) {
      run_pairs<PanelErrors, S, packets, Corrects>(p.data, dk, pairs, count, p.first, p.rows);
    });
    for (Index i = 0; i < count; ++i) {
      const auto &one = pairs[i].one, &two = pairs[i].two;
      dot_products({one.u, one.u, two.u, one.u},
                   {one.dy, two.dy, two.dy, Corrects ? two.c : two.dy}, dv, pairs[i].answered);
      if constexpr (Corrects) {
        correct<S>(one, dv);
        if (!pairs[i].lonely) correct<S>(two, dv);
      }
      std::copy_n(pairs[i].answered, 4, answered + 4 * (first + count - 1 - i));
    }
    transposed.each([&](auto packets, const auto& p) {
      run_pairs<PanelKeys, S, packets, Corrects>(p.data, dv, pairs, count, p.first, p.rows);
    });
  });
  errors.copy_out(G.data(), G.colStride());
  transposed.copy_in_transposed(W.data(), W.colStride());
  for_pairs(t, steps, false, [&](BackwardPair<S>* pairs, Index count, Index first) {
    for (Index i = 0; i < count; ++i) std::copy_n(answered + 4 * (first + i), 4, pairs[i].answered);
    transposed.each([&](auto packets, const auto& p) {
      run_pairs<PanelQueries, S, packets, Corrects>(p.data, dv, pairs, count, p.first, p.rows);
    });
  });
}

}  // namespace FASTWEIGHTS_KERNELS
}  // namespace fw::detail
