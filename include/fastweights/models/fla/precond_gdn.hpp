#pragma once

#include <fastweights/any_memory/table/delta_rows.hpp>
#include <fastweights/models/fla/parts.hpp>

/// \file
/// Preconditioned Gated DeltaNet: Tumma, Loo, Rus 2026, arXiv 2604.21100. For a token and a value
/// head:
///
///     q, k, v = silu(conv(W x))     q, k ← l2     α = exp(−exp(A_log) softplus(W_a x + dt_bias))
///     A ← α' A + β' k ⊙ k     r = log(A + 1e-6) − log_atk_scale     k̂ = 1.5^{−r/(1+|r|)} ⊙ k
///     W ← α W + β (v − α W k) k̂ᵀ,   β = σ(W_b x), doubled with allow_neg_eigval     o = W q / √d_k
///     y = W_o (w ⊙ rms(o) ⊙ silu(W_g x)), or W_o (w ⊙ rms(o)) without use_gate
///
/// α' and β' are as α and β, from weights of their own (a_atk_proj, b_atk_proj), for every key
/// head.

namespace fw::inline FASTWEIGHTS_ABI::models::fla {

/// The layer, from its arguments in config.json.
template <class S> Network<S> precond_gdn(const Config& c) {
  if (c.number("squash_x", 1.5) != 1.5) c.fail("squash_x", "supported is 1.5");
  if (c.number("squash_eps", 1e-6) != 1e-6) c.fail("squash_eps", "supported is 1e-6");
  return layer<S>(c, [&](const Value<S>& x) {
    const Heads h = grouped_heads(c, 2);
    const Value<S> q = activated(x, c, "q", h.keys());
    const Value<S> k = activated(x, c, "k", h.keys());
    const Value<S> v = activated(x, c, "v", h.values());
    const Value<S> beta = strength(x, c, h.heads);
    const Value<S> decay = softplus_decay(project(x, "a", h.heads), h.heads);
    const Value<S> moment_beta = sigmoid(project(x, "b_atk", h.key_heads));
    const Value<S> moment_decay =
        softplus_decay(project(x, "a_atk", h.key_heads), h.key_heads, "A_log_atk", "dt_bias_atk");
    const Value<S> scale = parameter(*x.builder, "log_atk_scale", h.key_heads,
                                     constant_draw(c.number("log_atk_scale_init", -0.2)));
    const Value<S> o = memory(PreconditionedDeltaRule<S>({h.d_k, h.d_v}),
                              {l2(k, h.key_heads), v, beta, decay, moment_beta, moment_decay},
                              {unit_queries(q, h.key_heads)}, "memory", {scale});
    return output(x, o, h.heads, c, c.flag("use_gate", true));
  });
}

}  // namespace fw::models::fla
