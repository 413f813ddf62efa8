#pragma once

#include <fastweights/any_memory/table/learners.hpp>
#include <fastweights/layers/parts.hpp>

/// \file
/// MesaNet: von Oswald et al. 2025, arXiv 2506.05233. For a token and a head:
///
///     q, k = l2(silu(conv(W x)))     v = W_v x     α = σ(W_a x + b_a)     β = σ(W_b x + b_b)
///     W ← α W + β v kᵀ     G ← α G + β k kᵀ     o = W (G + diag(λ))⁻¹ q
///     λ = softplus(lambda_params) + l     y = W_o (w ⊙ rms(o))
///
/// With a gate, y = W_o (w ⊙ rms(o) ⊙ gate(W_g x)). Solves by a decomposition.

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// Options of mesa_net.
struct MesaNetOptions {
  Index heads = 1, d = 64;  ///< heads, and the rows of a key and of a value
  ShortConvolution convolution = {};
  double least_ridge = 0.25;           ///< l
  Activation gate = Activation::none;  ///< of the output; none: without W_g
  OutputNorm norm = {};
};

/// y of the equations, with as many rows as x. Cost: 8 d² and a solver a head and token, and the
/// maps.
template <class S>
Value<S> mesa_net(const Value<S>& in, const std::string& name, const MesaNetOptions& o) {
  return module(name, in, [&](const Value<S>& x) {
    const Index rows = o.heads * o.d;
    const Value<S> q = l2(activated(x, "q", rows, o.convolution), o.heads);
    const Value<S> k = l2(activated(x, "k", rows, o.convolution), o.heads);
    const Value<S> v = project(x, "v", rows);
    const Value<S> beta = sigmoid(project(x, "b", o.heads, true));
    const Value<S> decay = sigmoid(project(x, "a", o.heads, true));
    const auto draw =
        constant_initialiser(std::log(std::expm1(std::max(1 - o.least_ridge, 1e-3))));  // λ = 1
    const Value<S> ridge =
        o.least_ridge + softplus(parameter(*x.builder, "lambda_params", rows, draw));
    const Value<S> y =
        memory(MesaMemory<S>({o.d, o.d}), {k, v, beta, decay}, {q}, "memory", {ridge});
    return gated_output(x, y, "o_norm", o.heads, o.norm, o.gate);
  });
}

}  // namespace fw::networks
