#pragma once

#include <fastweights/any_memory/table/delta_family.hpp>
#include <fastweights/models/fla/parts.hpp>

/// \file
/// Comba: Hu et al. 2025, arXiv 2506.02475. For a token and a value head:
///
///     q, k, v = silu(conv(W x))     p = σ(decay) k     q ← q − D p     q, k, p ← l2
///     W ← α W + β (v − W p) kᵀ,     α = exp(−exp(A_log) softplus(W_a x + dt_bias)),  β = σ(W_b x)
///     o = W q / √d_k                y = W_o (w ⊙ rms(o) ⊙ σ(W_g x))
///
/// p looks up the memory before its decay. decay and D have an entry for every key head. Without
/// use_inner_decay p = k, without use_output_correction D = 0, without use_output_gate
/// y = W_o (w ⊙ rms(o)).

namespace fw::inline FASTWEIGHTS_ABI::models::fla {

/// The layer, from its arguments in config.json.
template <class S> Network<S> comba(const Config& c) {
  return layer<S>(c, [&](const Value<S>& x) {
    Builder<S>& net = *x.builder;
    const Heads h = grouped_heads(c, 2);
    Value<S> q = activated(x, c, "q", h.keys());
    const Value<S> k = activated(x, c, "k", h.keys());
    const Value<S> v = activated(x, c, "v", h.values());
    Value<S> p = k;
    if (c.flag("use_inner_decay", true))
      p = k * sigmoid(parameter(net, "decay", h.key_heads, constant_draw(1)));
    if (c.flag("use_output_correction", true))
      q = q - p * parameter(net, "D", h.key_heads, constant_draw(c.number("correction_factor", 1)));
    const Value<S> beta = sigmoid(project(x, "b", h.heads));
    const Value<S> decay = softplus_decay(project(x, "a", h.heads), h.heads);
    const Value<S> o =
        memory(Comba<S>({h.d_k, h.d_v}), {l2(k, h.key_heads), v, l2(p, h.key_heads), beta, decay},
               {unit_queries(q, h.key_heads)});
    return output(x, o, h.heads, c, c.flag("use_output_gate", true), Gate::sigmoid);
  });
}

}  // namespace fw::models::fla
