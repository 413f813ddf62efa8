#pragma once

#include <fastweights/kernels/backward_panels.hpp>
#include <fastweights/kernels/panels.hpp>

/// \file
/// Gradients of a rule of the family over a whole sequence, from the first state and, where the
/// rule looks up what a key retrieves, u_t = v_t − W̄_t k_t of the forward pass. With W̄_t = W_{t−1}
/// α_t, e_t = β_t u_t and G_t the gradient of W_t, three passes over the tokens each take one
/// matrix along:
///
///     back:     G_t = Ḡ_{t+1} α_{t+1} + dy_t q_tᵀ,   c_t = G_t k_t,   Ḡ_t = G_t − β_t c_t k_tᵀ
///     onwards:  W_t = W̄_t + e_t k_tᵀ,   dq_t = W_tᵀ dy_t,   dk_t −= β_t W̄_tᵀ c_t
///     back:     dk_t += β_t G_tᵀ u_t
///     and       dv_t = β_t c_t,   dβ_t = c_t·u_t
///
/// The latter two have the matrix transposed, so that their products run along the lanes as well.
/// Sum rules are the same with e = β v and without c in G and dk. Nothing is divided by a decay.
/// Cost: three times the scan.

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
/// first state, and has faded for the first token already: Ḡ of that is what G becomes.
template <bool Corrects, bool Fades, class Matrix, class S>
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
  PairFades<S> fades(t, Fades ? dk : 0);
  const auto spread = [&](BackwardPair<S>& p, Index at, Index i) {
    if constexpr (Fades) fades.spread(p, at, i);
  };
  const auto multiply = [&](BackwardPair<S>& p, Index at, Index i) {
    spread(p, at, i);
    if constexpr (Fades) fades.multiply(p, i);
  };
  constexpr Index most = Fades ? PairFades<S>::most : 32;
  for_pairs<most>(t, steps, true, multiply, [&](BackwardPair<S>* pairs, Index count, Index first) {
    for (Index i = 0; i < count; ++i) {
      const auto &one = pairs[i].one, &two = pairs[i].two;
      const S* const k1 = pairs[i].looked_up;
      dot_products({k1, one.k, k1, two.k}, {two.k, one.q, two.q, two.q}, dk, pairs[i].met);
    }
    errors.each([&](auto packets, const auto& p) {
      run_pairs<PanelErrors, S, packets, Corrects, Fades>(p.data, dk, pairs, count, p.first,
                                                          p.rows);
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
      run_pairs<PanelKeys, S, packets, Corrects, Fades>(p.data, dv, pairs, count, p.first, p.rows);
    });
  });
  errors.copy_out(G.data(), G.colStride());
  transposed.copy_in_transposed(W.data(), W.colStride());
  for_pairs<most>(t, steps, false, spread, [&](BackwardPair<S>* pairs, Index count, Index first) {
    for (Index i = 0; i < count; ++i) std::copy_n(answered + 4 * (first + i), 4, pairs[i].answered);
    transposed.each([&](auto packets, const auto& p) {
      run_pairs<PanelQueries, S, packets, Corrects, Fades>(p.data, dv, pairs, count, p.first,
                                                           p.rows);
    });
  });
}

}  // namespace FASTWEIGHTS_KERNELS
}  // namespace fw::detail
