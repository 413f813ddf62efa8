#pragma once

#include <fastweights/kernels/backward/chunk_passes.hpp>
#include <fastweights/kernels/backward/pair_passes.hpp>

/// \file
/// Gradients of a kernel rule over a whole sequence. Inputs are the first state and, for a rule
/// with a delta term, the errors e_t = v_t − W̄_t k_t of the forward pass. With W̄_t = W_{t−1} α_t,
/// u_t = β_t e_t and the gradient G_t of W_t, there are two passes over the tokens:
///
///     backward:  G_t = Ḡ_{t+1} α_{t+1} + dy_t q_tᵀ,   du_t = G_t k_t,   Ḡ_t = G_t − β_t du_t k_tᵀ
///                dk_t += β_t G_tᵀ e_t,   dv_t += β_t du_t,   dβ_t += du_t·e_t
///     forward:   W_t = W̄_t + u_t k_tᵀ,   dq_t += W_tᵀ dy_t,   dk_t −= β_t W̄_tᵀ du_t
///
/// Rules without a delta term have u = β v and no du in G and dk. The passes divide by no decay.
///
/// Large matrices without decays or with one decay per token go chunk by chunk (ChunkPasses). Let G
/// be the gradient after a chunk, W the state before it, A_ts = α_{t+1} ⋯ α_s within the chunk and
/// A the product of decays from the start to t, or from t to the end:
///
///     du_t  = A G k_t + Σ_{s≥t} A_ts (k_t·q_s) dy_s − Σ_{s>t} A_ts (k_t·k_s) β_s du_s
///     dk_t += β_t (A Gᵀ e_t + Σ_{s≥t} A_ts (e_t·dy_s) q_s − Σ_{s>t} A_ts (e_t·du_s) β_s k_s)
///     dq_s += A Wᵀ dy_s + Σ_{t≤s} A_ts (e_t·dy_s) β_t k_t
///     dk_s −= β_s (A Wᵀ du_s + Σ_{t<s} A_ts (e_t·du_s) β_t k_t)
///
/// So G k and Gᵀ e need only one G, with one update per chunk: 14 d_v d_k flops per token, and
/// about 18 d chunk within a chunk. Gᵀ e has the tokens in SIMD lanes and needs no transposed
/// matrix.
///
/// Other matrices go pair by pair, and Gᵀ e takes a third pass (PairPasses): with decays in every
/// column there are no products of a chunk's tokens, and for small matrices they cost too much.

namespace fw::inline FASTWEIGHTS_ABI::detail {

#define FASTWEIGHTS_CHUNK_PANELS(keyword, S, R, HasDeltaTerm)                           \
  keyword template void ChunkGradients<S, R, HasDeltaTerm>::run(const Panel<S>&, Index, \
                                                                Chunk<S>&);             \
  keyword template void ChunkQueries<S, R, HasDeltaTerm>::run(const Panel<S>&, Index, Chunk<S>&)
#define FASTWEIGHTS_BACKWARD_PANEL(keyword, Visit, S, R, HasDeltaTerm, decay_kind)      \
  keyword template void                                                                 \
  PairLoop<Visit<S, R, HasDeltaTerm, decay_kind>, S, R, HasDeltaTerm, decay_kind>::run( \
      const Panel<S>&, Index, const BackwardPair<S>*, Index)
#define FASTWEIGHTS_BACKWARD_PANELS(keyword, S, R, HasDeltaTerm, decay_kind)                 \
  FASTWEIGHTS_BACKWARD_PANEL(keyword, PanelUpdateGradients, S, R, HasDeltaTerm, decay_kind); \
  FASTWEIGHTS_BACKWARD_PANEL(keyword, PanelQueries, S, R, HasDeltaTerm, decay_kind);         \
  FASTWEIGHTS_BACKWARD_PANEL(keyword, PanelKeys, S, R, HasDeltaTerm, decay_kind)
#define FASTWEIGHTS_LOW_BACKWARD_PANELS(keyword, S, HasDeltaTerm, decay_kind) \
  FASTWEIGHTS_BACKWARD_PANELS(keyword, S, 1, HasDeltaTerm, decay_kind);       \
  FASTWEIGHTS_BACKWARD_PANELS(keyword, S, 2, HasDeltaTerm, decay_kind)
/// Explicit instances, or with `extern` their declarations, of panels with one or two packets. The
/// TALL macro has those with four.
#define FASTWEIGHTS_BACKWARD_KERNELS(keyword, S)                              \
  FASTWEIGHTS_LOW_BACKWARD_PANELS(keyword, S, false, DecayKind::none);        \
  FASTWEIGHTS_LOW_BACKWARD_PANELS(keyword, S, true, DecayKind::none);         \
  FASTWEIGHTS_LOW_BACKWARD_PANELS(keyword, S, false, DecayKind::scalar);      \
  FASTWEIGHTS_LOW_BACKWARD_PANELS(keyword, S, true, DecayKind::scalar);       \
  FASTWEIGHTS_LOW_BACKWARD_PANELS(keyword, S, false, DecayKind::per_channel); \
  FASTWEIGHTS_LOW_BACKWARD_PANELS(keyword, S, true, DecayKind::per_channel);  \
  FASTWEIGHTS_CHUNK_PANELS(keyword, S, 1, false);                             \
  FASTWEIGHTS_CHUNK_PANELS(keyword, S, 1, true);                              \
  FASTWEIGHTS_CHUNK_PANELS(keyword, S, 2, false);                             \
  FASTWEIGHTS_CHUNK_PANELS(keyword, S, 2, true)
#define FASTWEIGHTS_TALL_BACKWARD_KERNELS(keyword, S)                  \
  FASTWEIGHTS_BACKWARD_PANELS(keyword, S, 4, true, DecayKind::none);   \
  FASTWEIGHTS_BACKWARD_PANELS(keyword, S, 4, true, DecayKind::scalar); \
  FASTWEIGHTS_CHUNK_PANELS(keyword, S, 4, false);                      \
  FASTWEIGHTS_CHUNK_PANELS(keyword, S, 4, true)

#ifdef FASTWEIGHTS_COMPILED
FASTWEIGHTS_BACKWARD_KERNELS(extern, float);
FASTWEIGHTS_BACKWARD_KERNELS(extern, double);
FASTWEIGHTS_TALL_BACKWARD_KERNELS(extern, float);
FASTWEIGHTS_TALL_BACKWARD_KERNELS(extern, double);
#endif

/// Whether chunks are faster than pairs: from about 56×56 on.
template <DecayKind decay_kind> constexpr bool worth_chunks(Index dv, Index dk) {
  return decay_kind != DecayKind::per_channel && dv * dk >= 3072;
}

/// Accumulates the gradients of the tokens. `W` is the first state, with the decay of the first
/// token applied. G is the gradient of the final state on entry, and that of `W` on return.
template <bool HasDeltaTerm, DecayKind decay_kind, class Matrix, class S>
void backward_pairs(const Matrix& W, Matrix& G, const BackwardTokens<S>& tokens, Index steps) {
  const Index dv = W.rows(), dk = W.cols();
  const auto run = [&](auto&& passes) {
    passes.run_backward(G);
    passes.run_forward(W);
  };
  if (worth_chunks<decay_kind>(dv, dk))
    run(ChunkPasses<HasDeltaTerm, S>(tokens, steps, dv, dk));
  else
    run(PairPasses<HasDeltaTerm, decay_kind, S>(tokens, steps, dv, dk));
}

}  // namespace fw::detail
