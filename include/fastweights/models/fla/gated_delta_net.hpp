#pragma once

#include <fastweights/any_memory/table/gated_deltas.hpp>
#include <fastweights/models/fla/parts.hpp>

/// \file
/// Gated DeltaNet: Yang, Kautz, Hatamizadeh 2024, arXiv 2412.06464. For a token and a value head:
///
///     q, k, v = silu(conv(W x))     q, k ← l2     α = exp(−exp(A_log) softplus(W_a x + dt_bias))
///     W ← α W + β (v − α W k) kᵀ,   β = σ(W_b x), doubled with allow_neg_eigval     o = W q / √d_k
///     y = W_o (w ⊙ rms(o) ⊙ silu(W_g x)), or W_o (w ⊙ rms(o)) without use_gate

namespace fw::inline FASTWEIGHTS_ABI::models::fla {

/// The layer, from its arguments in config.json.
template <class S> Network<S> gated_delta_net(const Config& c) {
  return layer<S>(c, [&](const Value<S>& x) {
    const Heads h = grouped_heads(c, 2);
    const Value<S> q = activated(x, c, "q", h.keys());
    const Value<S> k = activated(x, c, "k", h.keys());
    const Value<S> v = activated(x, c, "v", h.values());
    const Value<S> decay = softplus_decay(project(x, "a", h.heads), h.heads);
    const Value<S> o = memory(GatedDeltaRule<S>({h.d_k, h.d_v}),
                              {l2(k, h.key_heads), v, strength(x, c, h.heads), decay},
                              {unit_queries(q, h.key_heads)});
    return output(x, o, h.heads, c, c.flag("use_gate", true));
  });
}

}  // namespace fw::models::fla
