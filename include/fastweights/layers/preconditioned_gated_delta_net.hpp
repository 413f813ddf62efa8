#pragma once

#include <fastweights/any_memory/table/delta_rows.hpp>
#include <fastweights/layers/parts.hpp>

/// \file
/// Preconditioned Gated DeltaNet: Tumma, Loo, Rus 2026, arXiv 2604.21100. For a token and a value
/// head:
///
///     q, k, v = silu(conv(W x))     q, k ← l2     α = exp(−exp(A_log) softplus(W_a x + dt_bias))
///     A ← α' A + β' k ⊙ k     r = log(A + 1e-6) − log_atk_scale     k̂ = 1.5^{−r/(1+|r|)} ⊙ k
///     W ← α W + β (v − α W k) k̂ᵀ,   β = σ(W_b x)     o = W q / √d_k
///     y = W_o (w ⊙ rms(o) ⊙ silu(W_g x))
///
/// α' and β' are as α and β, from weights of their own (a_atk_proj, b_atk_proj), for every key
/// head.

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// Options of preconditioned_gated_delta_net.
struct PreconditionedGatedDeltaNetOptions {
  Heads heads;
  ShortConvolution convolution = {};
  bool negative_eigenvalues = false;   ///< β is doubled: arXiv 2411.12537
  double initial_log_scale = -0.2;     ///< of log_atk_scale
  Activation gate = Activation::silu;  ///< of the output; none: without W_g
  OutputNorm norm = {};
};

/// y of the equations, with as many rows as x. Cost: 7 d_k d_v a head and token, and the maps.
template <class S>
Value<S> preconditioned_gated_delta_net(const Value<S>& in, const std::string& name,
                                        const PreconditionedGatedDeltaNetOptions& o) {
  return module(name, in, [&](const Value<S>& x) {
    const Heads& h = o.heads;
    const Value<S> q = activated(x, "q", h.keys(), o.convolution);
    const Value<S> k = activated(x, "k", h.keys(), o.convolution);
    const Value<S> v = activated(x, "v", h.values(), o.convolution);
    const Value<S> beta = strength(x, h.heads, o.negative_eigenvalues);
    const Value<S> decay = softplus_decay(project(x, "a", h.heads), h.heads);
    const Value<S> moment_beta = sigmoid(project(x, "b_atk", h.key_heads));
    const Value<S> moment_decay =
        softplus_decay(project(x, "a_atk", h.key_heads), h.key_heads, "A_log_atk", "dt_bias_atk");
    const Value<S> scale = parameter(*x.builder, "log_atk_scale", h.key_heads,
                                     constant_initialiser(o.initial_log_scale));
    const Value<S> y = memory(PreconditionedDeltaRule<S>({h.d_k, h.d_v}),
                              {l2(k, h.key_heads), v, beta, decay, moment_beta, moment_decay},
                              {unit_queries(q, h.key_heads)}, "memory", {scale});
    return gated_output(x, y, "o_norm", h.heads, o.norm, o.gate);
  });
}

}  // namespace fw::networks
