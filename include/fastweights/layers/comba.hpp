#pragma once

#include <fastweights/any_memory/table/delta_family.hpp>
#include <fastweights/layers/parts.hpp>

/// \file
/// Comba: Hu et al. 2025, arXiv 2506.02475. For a token and a value head:
///
///     q, k, v = silu(conv(W x))     p = σ(decay) k     q ← q − D p     q, k, p ← l2
///     W ← α W + β (v − W p) kᵀ,     α = exp(−exp(A_log) softplus(W_a x + dt_bias)),  β = σ(W_b x)
///     o = W q / √d_k                y = W_o (w ⊙ rms(o) ⊙ σ(W_g x))
///
/// p looks up the memory before its decay. decay and D have an entry for every key head.

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// Options of comba.
struct CombaOptions {
  Heads heads;
  ShortConvolution convolution = {};
  bool inner_decay = true;                ///< else p = k
  bool output_correction = true;          ///< else D = 0
  double initial_correction = 1;          ///< of D
  Activation gate = Activation::sigmoid;  ///< of the output; none: without W_g
  OutputNorm norm = {};
};

/// y of the equations, with as many rows as x. Cost: 7 d_k d_v a head and token, and the maps.
template <class S>
Value<S> comba(const Value<S>& in, const std::string& name, const CombaOptions& o) {
  return module(name, in, [&](const Value<S>& x) {
    Builder<S>& net = *x.builder;
    const Heads& h = o.heads;
    Value<S> q = activated(x, "q", h.keys(), o.convolution);
    const Value<S> k = activated(x, "k", h.keys(), o.convolution);
    const Value<S> v = activated(x, "v", h.values(), o.convolution);
    Value<S> p = k;
    if (o.inner_decay)
      p = k * sigmoid(parameter(net, "decay", h.key_heads, constant_initialiser(1)));
    if (o.output_correction)
      q = q - p * parameter(net, "D", h.key_heads, constant_initialiser(o.initial_correction));
    const Value<S> beta = sigmoid(project(x, "b", h.heads));
    const Value<S> decay = softplus_decay(project(x, "a", h.heads), h.heads);
    const Value<S> y = memory(fw::Comba<S>({h.d_k, h.d_v}),
                              {l2(k, h.key_heads), v, l2(p, h.key_heads), beta, decay},
                              {unit_queries(q, h.key_heads)});
    return gated_output(x, y, "o_norm", h.heads, o.norm, o.gate);
  });
}

}  // namespace fw::networks
