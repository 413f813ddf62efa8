#pragma once

#include <fastweights/any_memory/table/delta_products.hpp>
#include <fastweights/layers/parts.hpp>

/// \file
/// Gated DeltaProduct: Siems et al. 2025, arXiv 2502.10297. A token writes n times; the projections
/// of keys, values and strengths hold all heads of the first write, then of the second, … For a
/// token and a value head:
///
///     q, k_j, v_j = silu(conv(W x))     q, k_j ← l2     β_j = σ(W_b x)
///     α = exp(−exp(A_log) softplus(W_a x + dt_bias))
///     W ← α W, then W ← W + β_j (v_j − W k_j) k_jᵀ for j = 1 … n     o = W q / √d_k
///     y = W_o (w ⊙ rms(o) ⊙ silu(W_g x))

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// Options of gated_delta_product.
struct GatedDeltaProductOptions {
  Heads heads;
  Index writes = 2;  ///< n, 1 to 4
  ShortConvolution convolution = {};
  bool negative_eigenvalues = true;    ///< β_j is doubled: arXiv 2411.12537
  bool forgets = true;                 ///< else α is 1
  Activation gate = Activation::silu;  ///< of the output; none: without W_g
  OutputNorm norm = {};
};

namespace detail {

template <class S> AnyMemory<S> delta_product(const GatedDeltaProductOptions& o) {
  const Sizes<> sizes{o.heads.d_k, o.heads.d_v};
  switch (o.writes) {
    case 1:
      return GatedDeltaProduct<S, 1>(sizes);
    case 2:
      return GatedDeltaProduct<S, 2>(sizes);
    case 3:
      return GatedDeltaProduct<S, 3>(sizes);
    case 4:
      return GatedDeltaProduct<S, 4>(sizes);
  }
  fw::detail::throw_invalid(
      {"gated_delta_product: ", std::to_string(o.writes), " writes, expected 1 to 4"});
}

}  // namespace detail

/// y of the equations, with as many rows as x. Cost: (4 n + 3) d_k d_v a head and token, and the
/// maps.
template <class S>
Value<S> gated_delta_product(const Value<S>& in, const std::string& name,
                             const GatedDeltaProductOptions& o) {
  return module(name, in, [&](const Value<S>& x) {
    const Heads& h = o.heads;
    const Index n = o.writes;
    const AnyMemory<S> rule = detail::delta_product<S>(o);
    const Value<S> q = activated(x, "q", h.keys(), o.convolution);
    const Value<S> k = activated(x, "k", n * h.keys(), o.convolution);
    const Value<S> v = activated(x, "v", n * h.values(), o.convolution);
    const Value<S> beta = strength(x, n * h.heads, o.negative_eigenvalues);
    const Value<S> decay = o.forgets ? softplus_decay(project(x, "a", h.heads), h.heads)
                                     : same_for_tokens(beta, h.heads, 1);
    const Value<S> y =
        memory(rule, {l2(k, n * h.key_heads), v, beta, decay}, {unit_queries(q, h.key_heads)});
    return gated_output(x, y, "o_norm", h.heads, o.norm, o.gate);
  });
}

}  // namespace fw::networks
