#pragma once

#include <fastweights/any_memory/table/gated_deltas.hpp>
#include <fastweights/layers/parts.hpp>

/// \file
/// The time mixing of RWKV-6: Peng et al. 2024, arXiv 2404.05892, section 4. For a token and a
/// head, with d = x_{t−1} − x_t:
///
///     m = tanh(W_1 (x + d ⊙ μ)), in parts m_i for i = r, w, k, v, g
///     z_i = x + d ⊙ (A_i m_i + b_i)
///     r, k, v, g = W z     α = exp(−exp(W_3 tanh(W_2 z_w) + b))
///     o = W r + v Σ (u ⊙ k ⊙ r),   then W ← W diag(α) + v kᵀ
///     y = W_o ((w ⊙ standardise(o) + b) ⊙ silu(g))

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// Options of rwkv6.
struct Rwkv6Options {
  Index heads = 4, d_k = 32, d_v = 64;   ///< heads, and the rows of a key and of a value
  Index mix_rank = 32, decay_rank = 64;  ///< rows of a part of W_1, and of W_2
  Activation gate = Activation::silu;    ///< of g
  OutputNorm norm = {};
};

/// The share of the token before in z_i, i = r, w, k, v, g: A_i m_i + b_i for every token. The
/// A_i are columns of one matrix.
template <class S>
std::array<Value<S>, 5> rwkv6_mixes(const Value<S>& x, const Value<S>& d, Index rank) {
  Builder<S>& net = *x.builder;
  const Index n = x.rows();
  const Value<S> mu = parameter(net, "x_proj.0.mu", n);
  const Value<S> m = tanh(linear(x + d * mu, "x_proj.0.linear", 5 * rank));
  const Value<S> biases = parameter_matrix(net, "x_bias", 5, n);
  std::array<Value<S>, 5> mixes;
  for (Index i = 0; i < 5; ++i) {
    std::vector<double> own(static_cast<std::size_t>(5 * rank));
    std::fill_n(own.begin() + i * rank, rank, 1.0);
    mixes[std::size_t(i)] =
        linear(m * constants(net, std::move(own)), "x_proj.2", n) + biases.rows_of(i * n, n);
  }
  return mixes;
}

/// w ⊙ standardise(o) + b for every head; if it is not affine, standardise(o).
template <class S> Value<S> rwkv6_norm(const Value<S>& y, const Rwkv6Options& o) {
  if (!o.norm.affine) return standardise(y, o.heads, o.norm.epsilon);
  return layer_norm(y, "g_norm", {.epsilon = o.norm.epsilon, .groups = o.heads, .bias = true});
}

/// y of the equations, with as many rows as x. Cost: 5 d_k d_v a head and token, and the maps.
template <class S>
Value<S> rwkv6(const Value<S>& in, const std::string& name, const Rwkv6Options& o) {
  return module(name, in, [&](const Value<S>& x) {
    const Index keys = o.heads * o.d_k, values = o.heads * o.d_v;
    const Value<S> d = token_shift(x) - x;
    const auto [m_r, m_w, m_k, m_v, m_g] = rwkv6_mixes(x, d, o.mix_rank);
    const auto projected = [&](const Value<S>& mix, const std::string& map, Index rows) {
      return linear(x + d * mix, map + "_proj.linear", rows);
    };
    const Value<S> r = projected(m_r, "r", keys), k = projected(m_k, "k", keys);
    const Value<S> v = projected(m_v, "v", values);
    const Value<S> low = tanh(linear(x + d * m_w, "w_proj.linear.lora.0", o.decay_rank));
    const Value<S> decay = exp(-exp(linear(low, "w_proj.linear.lora.2", keys, true)));
    const Value<S> bonus =
        parameter_matrix(*x.builder, "bonus", o.heads, o.d_k, uniform_initialiser(0.1));
    const Value<S> y =
        memory(Rwkv6<S>({o.d_k, o.d_v}), {k, v, decay}, {r, k, v}, "memory", {bonus});
    const Value<S> gate = activation(projected(m_g, "g", values), o.gate);
    return linear(rwkv6_norm(y, o) * gate, "o_proj", x.rows());
  });
}

}  // namespace fw::networks
