#pragma once

#include <fastweights/any_memory/table/deltas.hpp>
#include <fastweights/layers/parts.hpp>

/// \file
/// DeltaNet: Yang et al. 2024, arXiv 2406.06484. For a token and a head:
///
///     q, k = l2(φ(conv(W x)))     v = silu(conv(W_v x))     β = σ(W_b x)
///     W ← W + β (v − W k) kᵀ      o = W q / √d_k            y = W_o (w ⊙ rms(o))
///
/// With a gate y = W_o (w ⊙ rms(o) ⊙ gate(W_g x)).

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// Options of delta_net.
struct DeltaNetOptions {
  Index heads = 1, d_k = 64, d_v = 64;  ///< heads, and the rows of a key and of a value
  ShortConvolution convolution = {};
  Activation key_activation = Activation::silu;  ///< φ
  bool sum_to_one = false;             ///< q and k are divided by their sum, in place of l2
  bool learns_strength = true;         ///< else β is 1
  bool negative_eigenvalues = false;   ///< β is doubled: arXiv 2411.12537
  Activation gate = Activation::none;  ///< of the output; none: without W_g
  OutputNorm norm = {};
};

/// 1 / x, as an operation.
struct Reciprocal {
  template <class S> S value(const S& x) const { return S(1) / x; }
  template <class S> S derivative(const S& x) const { return S(-1) / (x * x); }
  template <class A> auto values(const A& x) const { return x.inverse(); }
  template <class A, class B> auto derivatives(const A&, const B& y) const { return -y.square(); }
};

/// Queries or keys of a delta_net.
template <class S>
Value<S> delta_net_keys(const Value<S>& x, const std::string& name, const DeltaNetOptions& o) {
  const Value<S> k =
      activation(convolved(x, name, o.heads * o.d_k, o.convolution), o.key_activation);
  return o.sum_to_one ? k * apply<Reciprocal>(sum_heads(k, o.heads)) : l2(k, o.heads);
}

/// y of the equations, with as many rows as x. Cost: 6 d_k d_v a head and token, and the maps.
template <class S>
Value<S> delta_net(const Value<S>& in, const std::string& name, const DeltaNetOptions& o) {
  return module(name, in, [&](const Value<S>& x) {
    const Value<S> q = delta_net_keys(x, "q", o), k = delta_net_keys(x, "k", o);
    const Value<S> v = activated(x, "v", o.heads * o.d_v, o.convolution);
    const Value<S> beta = o.learns_strength
                              ? strength(x, o.heads, o.negative_eigenvalues)
                              : same_for_tokens(q, o.heads, o.negative_eigenvalues ? 2 : 1);
    const Value<S> y =
        memory(DeltaRule<S>({o.d_k, o.d_v}), {k, v, beta}, {(1 / std::sqrt(double(o.d_k))) * q});
    return gated_output(x, y, "o_norm", o.heads, o.norm, o.gate);
  });
}

}  // namespace fw::networks
