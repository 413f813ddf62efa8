#pragma once

#include <fastweights/kernels/backward/chunk_passes.hpp>
#include <fastweights/kernels/backward/pairs/passes.hpp>

/// \file
/// Gradients of a kernel rule over a whole sequence. Inputs are the first state and, for
/// corrections with a look-up, the errors of the forward pass. For the corrections W̄ = W α, e = v −
/// ρ W̄ a, u = β ∘ e, W ← W̄ + u bᵀ, y = W q (docs/design.md, "One form for the family") and the
/// gradient G of W, there are two passes over the corrections:
///
///     backward:  G += dy qᵀ,   du = G b,   db = Gᵀ u,   f = −ρ β ∘ du,   G ← (G + f aᵀ) α
///     forward:   da = W̄ᵀ f,   W ← W̄ + u bᵀ,   dq = Wᵀ dy
///
/// ρ is the coefficient retrieved_scale. f is the gradient of the look-up W̄ a; the code calls it
/// the removal. dv and dβ follow from du. With one decay per column the keys of a chunk are divided
/// by products of decays (ChunkKeys), and otherwise nothing is.
///
/// They go chunk by chunk, of at most 8 corrections (ChunkPasses). Let G be the gradient after a
/// chunk, W the state before it, A_ts the product of the decays from correction t to s, and A the
/// product from the start to t, or from t to the end:
///
///     du_t = G A b_t + Σ_{reads s ≥ t} (b_t A_ts q_s) dy_s + Σ_{look-ups s > t} (b_t A_ts a_s) f_s
///     db_t = A Gᵀ u_t + Σ_{s ≥ t} (u_t·dy_s) A_ts q_s + Σ_{s > t} (u_t·f_s) A_ts a_s
///     dq_s = A Wᵀ dy_s + Σ_{t ≤ s} (u_t·dy_s) A_ts b_t
///     da_s = A Wᵀ f_s + Σ_{t < s} (u_t·f_s) A_ts b_t
///
/// So G b and Gᵀ u need only one G, with one update per chunk: 14 d_v d_k flops per correction that
/// looks up and is read, and about 20 chunk (d_v + d_k) within a chunk. Gᵀ u has the tokens in SIMD
/// lanes and needs no transposed matrix.
///
/// Small matrices of rules with `plain_coefficients` (a = b = k, one β) go pair by pair, and Gᵀ u
/// takes a third pass (PairPasses): within a chunk there is too much work besides.

namespace fw::inline FASTWEIGHTS_ABI::detail {

#define FASTWEIGHTS_CHUNK_PANELS(keyword, S, R, HasLookups)                                       \
  keyword template void ChunkGradients<S, R, HasLookups>::run(const Panel<S>&, Index, Chunk<S>&); \
  keyword template void ChunkQueries<S, R, HasLookups>::run(const Panel<S>&, Index, Chunk<S>&)
#define FASTWEIGHTS_BACKWARD_PANEL(keyword, Visit, S, R, HasLookups, decay_kind)    \
  keyword template void                                                             \
  PairLoop<Visit<S, R, HasLookups, decay_kind>, S, R, HasLookups, decay_kind>::run( \
      const Panel<S>&, Index, const BackwardPair<S>*, Index)
#define FASTWEIGHTS_BACKWARD_PANELS(keyword, S, R, HasLookups, decay_kind)                 \
  FASTWEIGHTS_BACKWARD_PANEL(keyword, PanelUpdateGradients, S, R, HasLookups, decay_kind); \
  FASTWEIGHTS_BACKWARD_PANEL(keyword, PanelQueries, S, R, HasLookups, decay_kind);         \
  FASTWEIGHTS_BACKWARD_PANEL(keyword, PanelKeys, S, R, HasLookups, decay_kind)
#define FASTWEIGHTS_LOW_BACKWARD_PANELS(keyword, S, HasLookups, decay_kind) \
  FASTWEIGHTS_BACKWARD_PANELS(keyword, S, 1, HasLookups, decay_kind);       \
  FASTWEIGHTS_BACKWARD_PANELS(keyword, S, 2, HasLookups, decay_kind)
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

/// True if chunks are faster than pairs.
template <DecayKind decay_kind> constexpr bool worth_chunks(Index dv, Index dk) {
  return dv * dk >= (decay_kind == DecayKind::per_channel ? 72 * 72 : 56 * 56);
}

/// Accumulates the gradients of `tokens` tokens of a rule from `first` on. `W` is the state before
/// them, with the decay of the first token applied. G is the gradient of the state after them on
/// entry, and that of `W` on return. Neither has what the first token looks up or reads before it
/// decays.
template <DecayKind decay_kind, class Rule, class Matrix>
void backward_segment(Rule& rule, const Matrix& W, Matrix& G, Index first, Index tokens) {
  constexpr bool has_lookups = Rule::layout.lookup_step > 0;
  const auto run = [&](auto&& passes) {
    passes.run_backward(G);
    passes.run_forward(W);
  };
  if constexpr (Rule::has_pairs)
    if (!worth_chunks<decay_kind>(W.rows(), W.cols()))
      return run(PairPasses<has_lookups, decay_kind, typename Rule::Scalar>(
          rule.pair_tokens(first), tokens, W.rows(), W.cols()));
  run(ChunkPasses<has_lookups, decay_kind, Rule>(rule, rule.buffers(), first, tokens, W.rows(),
                                                 W.cols()));
}

}  // namespace fw::detail
