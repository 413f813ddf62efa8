#pragma once

#include <fastweights/any_memory/table/delta_family.hpp>
#include <fastweights/layers/parts.hpp>

/// \file
/// Gated DeltaNet-2, which erases and writes with strengths of their own: Hatamizadeh, Choi, Kautz
/// 2026, arXiv 2605.22791. For a token and a value head:
///
///     q, k, v = silu(conv(W x))     q, k ← l2     α = exp(−exp(A_log) softplus(W_f x + dt_bias))
///     b = σ(W_b x)     w = σ(W_w x)     W̄ = W diag(α)
///     W ← W̄ + (w ⊙ v − W̄ (b ⊙ k)) kᵀ     o = W q / √d_k
///     y = W_o (o_norm ⊙ rms(o) ⊙ σ(W_g x))
///
/// α and b have an entry for every key row, w for every value row. W_f and W_g have rank d_v.

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// Options of gated_delta_net_2.
struct GatedDeltaNet2Options {
  Heads heads;
  ShortConvolution convolution = {};
  bool negative_eigenvalues = false;  ///< b is doubled: arXiv 2411.12537
  OutputNorm norm = {};
};

/// y of the equations, with as many rows as x. Cost: 7 d_k d_v a head and token, and the maps.
template <class S>
Value<S> gated_delta_net_2(const Value<S>& in, const std::string& name,
                           const GatedDeltaNet2Options& o) {
  return module(name, in, [&](const Value<S>& x) {
    const Heads& h = o.heads;
    const Value<S> q = activated(x, "q", h.keys(), o.convolution);
    const Value<S> k = activated(x, "k", h.keys(), o.convolution);
    const Value<S> v = activated(x, "v", h.values(), o.convolution);
    const Value<S> decay = softplus_decay(low_rank(x, "f", h.d_v, h.keys()), h.key_heads);
    const Value<S> erase = strength(x, h.keys(), o.negative_eigenvalues);
    const Value<S> write = sigmoid(project(x, "w", h.values()));
    const Value<S> y =
        memory(GatedDeltaRule2<S>({h.d_k, h.d_v}), {l2(k, h.key_heads), v, decay, erase, write},
               {unit_queries(q, h.key_heads)});
    const Value<S> gate = sigmoid(low_rank(x, "g", h.d_v, h.values(), true));
    return project(head_norm(y, "o_norm", h.heads, o.norm) * gate, "o", x.rows());
  });
}

}  // namespace fw::networks
