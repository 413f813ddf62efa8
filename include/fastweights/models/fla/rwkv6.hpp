#pragma once

#include <fastweights/any_memory/table/gated_deltas.hpp>
#include <fastweights/models/fla/grouped_queries.hpp>
#include <fastweights/networks/operations/constants.hpp>

/// \file
/// The time mixing of RWKV-6: Peng et al. 2024, arXiv 2404.05892, section 4. For a token and a
/// head, with d = x_{t−1} − x_t:
///
///     m = tanh(W_1 (x + d ⊙ μ)), in parts m_i for i = r, w, k, v, g
///     z_i = x + d ⊙ (A_i m_i + b_i)
///     r, k, v, g = W z     α = exp(−exp(W_3 tanh(W_2 z_w) + b))
///     o = W r + v Σ (u ⊙ k ⊙ r),   then W ← W diag(α) + v kᵀ
///     y = W_o ((w ⊙ standardise(o) + b) ⊙ silu(g))
///
/// gate_fn names another function of the gate.

namespace fw::inline FASTWEIGHTS_ABI::models::fla {

/// How much of the token before is in z_i, i = r, w, k, v, g: A_i m_i + b_i for every token. The
/// A_i are columns of one matrix.
template <class S>
std::array<Value<S>, 5> rwkv6_mixes(const Value<S>& x, const Value<S>& d, const Config& c) {
  Builder<S>& net = *x.builder;
  const Index rank = c.size("proj_low_rank_dim", 32), n = x.rows();
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

/// w ⊙ standardise(o) + b for every head; without elementwise_affine, standardise(o).
template <class S> Value<S> rwkv6_norm(const Value<S>& o, Index heads, const Config& c) {
  const double epsilon = c.number("norm_eps", 1e-5);
  if (!is_affine(c)) return standardise(o, heads, epsilon);
  return layer_norm(o, "g_norm", {.epsilon = epsilon, .groups = heads, .bias = true});
}

/// y of the equations.
template <class S> Value<S> rwkv6_of(const Value<S>& x, const Config& c) {
  const Index heads = c.size("num_heads", 4);
  const Index d_k = head_size(c, "expand_k", 0.5, heads), keys = heads * d_k;
  const Index d_v = head_size(c, "expand_v", 1, heads), values = heads * d_v;
  const Value<S> d = previous(x) - x;
  const auto [m_r, m_w, m_k, m_v, m_g] = rwkv6_mixes(x, d, c);
  const auto projected = [&](const Value<S>& mix, const std::string& name, Index rows) {
    return linear(x + d * mix, name + "_proj.linear", rows);
  };
  const Value<S> r = projected(m_r, "r", keys), k = projected(m_k, "k", keys);
  const Value<S> v = projected(m_v, "v", values);
  const Value<S> low =
      tanh(linear(x + d * m_w, "w_proj.linear.lora.0", c.size("gate_low_rank_dim", 64)));
  const Value<S> decay = exp(-exp(linear(low, "w_proj.linear.lora.2", keys, true)));
  const Value<S> bonus = parameter_matrix(*x.builder, "bonus", heads, d_k, uniform_draw(0.1));
  const Value<S> o = memory(Rwkv6<S>({d_k, d_v}), {k, v, decay}, {r, k, v}, "memory", {bonus});
  const Value<S> gate = activation(projected(m_g, "g", values), c, "gate_fn", "swish");
  return linear(rwkv6_norm(o, heads, c) * gate, "o_proj", x.rows());
}

/// The layer, from its arguments in config.json.
template <class S> Network<S> rwkv6(const Config& c) {
  return layer<S>(c, [&](const Value<S>& x) { return rwkv6_of(x, c); });
}

}  // namespace fw::models::fla
