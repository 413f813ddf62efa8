#pragma once

#include <fastweights/any_memory/table/gated_deltas.hpp>
#include <fastweights/layers/parts.hpp>

/// \file
/// Gated DeltaNet: Yang, Kautz, Hatamizadeh 2024, arXiv 2412.06464. For a token and a value head:
///
///     q, k, v = silu(conv(W x))     q, k ← l2     α = exp(−exp(A_log) softplus(W_a x + dt_bias))
///     W ← α W + β (v − α W k) kᵀ,   β = σ(W_b x)     o = W q / √d_k
///     y = W_o (w ⊙ rms(o) ⊙ silu(W_g x))

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// Options of gated_delta_net.
struct GatedDeltaNetOptions {
  Heads heads;
  ShortConvolution convolution = {};
  bool negative_eigenvalues = false;   ///< β is doubled: arXiv 2411.12537
  Activation gate = Activation::silu;  ///< of the output; none: without W_g
  OutputNorm norm = {};
};

/// y of the equations, with as many rows as x. Cost: 7 d_k d_v a head and token, and the maps.
template <class S>
Value<S> gated_delta_net(const Value<S>& in, const std::string& name,
                         const GatedDeltaNetOptions& o) {
  return module(name, in, [&](const Value<S>& x) {
    const Heads& h = o.heads;
    const Value<S> q = activated(x, "q", h.keys(), o.convolution);
    const Value<S> k = activated(x, "k", h.keys(), o.convolution);
    const Value<S> v = activated(x, "v", h.values(), o.convolution);
    const Value<S> decay = softplus_decay(project(x, "a", h.heads), h.heads);
    const Value<S> y =
        memory(GatedDeltaRule<S>({h.d_k, h.d_v}),
               {l2(k, h.key_heads), v, strength(x, h.heads, o.negative_eigenvalues), decay},
               {unit_queries(q, h.key_heads)});
    return gated_output(x, y, "o_norm", h.heads, o.norm, o.gate);
  });
}

}  // namespace fw::networks
