#pragma once

#include <fastweights/any_memory/table/delta_products.hpp>
#include <fastweights/models/fla/parts.hpp>

/// \file
/// Gated DeltaProduct: Siems et al. 2025, arXiv 2502.10297. A token writes n = num_householder
/// times; the projections of keys, values and strengths hold all heads of the first write, then of
/// the second, … For a token and a value head:
///
///     q, k_j, v_j = silu(conv(W x))     q, k_j ← l2     β_j = σ(W_b x)
///     α = exp(−exp(A_log) softplus(W_a x + dt_bias))
///     W ← α W, then W ← W + β_j (v_j − W k_j) k_jᵀ for j = 1 … n     o = W q / √d_k
///     y = W_o (w ⊙ rms(o) ⊙ silu(W_g x))
///
/// β_j is doubled with allow_neg_eigval. Without use_forget_gate α is 1, without use_output_gate y
/// is W_o (w ⊙ rms(o)).

namespace fw::inline FASTWEIGHTS_ABI::models::fla {

/// The layer with N writes per token.
template <int N, class S> Network<S> gated_delta_product_of(const Config& c) {
  return layer<S>(c, [&](const Value<S>& x) {
    const Heads h = grouped_heads(c, 2);
    const Value<S> q = activated(x, c, "q", h.keys());
    const Value<S> k = activated(x, c, "k", N * h.keys());
    const Value<S> v = activated(x, c, "v", N * h.values());
    const Value<S> beta = strength(x, c, N * h.heads, true);
    const Value<S> decay = c.flag("use_forget_gate", true)
                               ? softplus_decay(project(x, "a", h.heads), h.heads)
                               : same_for_tokens(beta, h.heads, 1);
    const Value<S> o =
        memory(GatedDeltaProduct<S, N>({h.d_k, h.d_v}), {l2(k, N * h.key_heads), v, beta, decay},
               {unit_queries(q, h.key_heads)});
    return output(x, o, h.heads, c, c.flag("use_output_gate", true));
  });
}

/// The layer, from its arguments in config.json.
template <class S> Network<S> gated_delta_product(const Config& c) {
  const Index n = c.size("num_householder", 2);
  if (n == 1) return gated_delta_product_of<1, S>(c);
  if (n == 2) return gated_delta_product_of<2, S>(c);
  if (n == 3) return gated_delta_product_of<3, S>(c);
  if (n == 4) return gated_delta_product_of<4, S>(c);
  c.fail("num_householder", "supported are 1 to 4");
}

}  // namespace fw::models::fla
