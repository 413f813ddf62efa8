#pragma once

#include <fastweights/any_memory/table/delta_family.hpp>
#include <fastweights/models/fla/parts.hpp>

/// \file
/// Gated DeltaNet-2, which erases and writes with strengths of their own: Hatamizadeh, Choi, Kautz
/// 2026, arXiv 2605.22791. For a token and a value head:
///
///     q, k, v = silu(conv(W x))     q, k ← l2     α = exp(−exp(A_log) softplus(W_f x + dt_bias))
///     b = σ(W_b x), doubled with allow_neg_eigval     w = σ(W_w x)     W̄ = W diag(α)
///     W ← W̄ + (w ⊙ v − W̄ (b ⊙ k)) kᵀ     o = W q / √d_k
///     y = W_o (o_norm ⊙ rms(o) ⊙ σ(W_g x))
///
/// α and b have an entry for every key row, w for every value row. W_f and W_g have rank d_v.

namespace fw::inline FASTWEIGHTS_ABI::models::fla {

/// The layer, from its arguments in config.json.
template <class S> Network<S> gdn2(const Config& c) {
  return layer<S>(c, [&](const Value<S>& x) {
    const Heads h = grouped_heads(c, 1);
    const Value<S> q = activated(x, c, "q", h.keys());
    const Value<S> k = activated(x, c, "k", h.keys());
    const Value<S> v = activated(x, c, "v", h.values());
    const Value<S> decay = softplus_decay(low_rank(x, "f", h.d_v, h.keys()), h.key_heads);
    const Value<S> erase = strength(x, c, h.keys());
    const Value<S> write = sigmoid(project(x, "w", h.values()));
    const Value<S> o =
        memory(GatedDeltaRule2<S>({h.d_k, h.d_v}), {l2(k, h.key_heads), v, decay, erase, write},
               {unit_queries(q, h.key_heads)});
    const Value<S> gate = sigmoid(low_rank(x, "g", h.d_v, h.values(), true));
    return project(norm_by_head(o, "o_norm", h.heads, c) * gate, "o", x.rows());
  });
}

}  // namespace fw::models::fla
