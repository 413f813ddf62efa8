#pragma once

#include <fastweights/any_memory/table/gated_deltas.hpp>
#include <fastweights/layers/parts.hpp>
#include <optional>

/// \file
/// Kimi delta attention: the gated delta rule with one decay for every key row of a head. Kimi Team
/// 2025, arXiv 2510.26692, section 3. For a token and a value head:
///
///     q, k, v = silu(conv(W x))     q, k ← l2     α = exp(g)     β = σ(W_b x)
///     W ← W diag(α),   W ← W + β (v − W k) kᵀ     o = W q / √d_k
///     y = W_o (w ⊙ rms(o) ⊙ σ(W_g x))
///
/// with g = −exp(A_log) softplus(W_f x + dt_bias), or, if the decay has a lower bound b < 0,
/// g = b σ(exp(A_log) (W_f x + dt_bias)).

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// A linear map under the name `out`, or with a rank, two: `in` to `rank` rows, then `out`.
struct LowRank {
  std::string in = {}, out = {};  ///< their names; `in` is used with a rank only
  Index rank = 0;                 ///< 0: one map of full rank
  bool bias = false;              ///< of the map `out`
};

/// Sizes, options and names of a layer. Consecutive value heads share a key head.
struct KimiDeltaAttentionOptions {
  /// Heads of keys and of values, and their rows.
  Index key_heads = 1, heads = 1, d_k = 1, d_v = 1;
  Index kernel = 4;                        ///< of the convolutions; 0: without
  bool conv_bias = false;                  ///< of the convolutions
  bool negative_eigenvalues = false;       ///< β in (0, 2): arXiv 2411.12537
  std::optional<double> lower_bound = {};  ///< of g
  double epsilon = 1e-5;                   ///< of the output's norm
  LowRank forget, gate;                    ///< W_f and W_g
  std::string output = "o_proj";           ///< W_o
};

/// The map of x to `rows` rows.
template <class S> Value<S> low_rank(const Value<S>& x, const LowRank& map, Index rows) {
  return linear(map.rank > 0 ? linear(x, map.in, map.rank) : x, map.out, rows, map.bias);
}

/// The logarithm of the decay, g.
template <class S> Value<S> kimi_log_decay(const Value<S>& x, const KimiDeltaAttentionOptions& o) {
  const Value<S> f = low_rank(x, o.forget, o.heads * o.d_k);
  if (!o.lower_bound) return softplus_log_decay(f, o.heads);
  Builder<S>& net = *x.builder;
  return *o.lower_bound *
         sigmoid((f + parameter(net, "dt_bias", f.rows())) * exp(parameter(net, "A_log", o.heads)));
}

// y of the equations, in the module that is being built.
template <class S>
Value<S> kimi_delta_attention_of(const Value<S>& x, const KimiDeltaAttentionOptions& o) {
  Builder<S>& net = *x.builder;
  const auto projected = [&](const std::string& name, Index rows) {
    const Value<S> y = linear(x, name + "_proj", rows);
    return silu(o.kernel > 0 ? convolution(y, name + "_conv1d", o.kernel, o.conv_bias) : y);
  };
  const Value<S> q = projected("q", o.key_heads * o.d_k), k = projected("k", o.key_heads * o.d_k);
  const Value<S> v = projected("v", o.heads * o.d_v), log_decay = kimi_log_decay(x, o);
  net.note_module(net.path("forget_gate"), x, log_decay);
  const Value<S> beta = sigmoid(linear(x, "b_proj", o.heads));
  const Value<S> y =
      memory(GatedDeltaRule<S, Dynamic, Dynamic, KeyValueBetaVectorDecay>({o.d_k, o.d_v}),
             {l2(k, o.key_heads), v, o.negative_eigenvalues ? 2.0 * beta : beta, exp(log_decay)},
             {unit_queries(q, o.key_heads)});
  const Value<S> gated =
      rms_norm(y, "o_norm", {.epsilon = o.epsilon, .groups = o.heads, .shared = true}) *
      sigmoid(low_rank(x, o.gate, y.rows()));
  net.note_module(net.path("o_norm"), y, gated);
  return linear(gated, o.output, x.rows());
}

/// y of the equations, with as many rows as x. Cost: 7 d_k d_v a head and token, and the maps.
template <class S>
Value<S> kimi_delta_attention(const Value<S>& in, const std::string& name,
                              const KimiDeltaAttentionOptions& o) {
  return module(name, in, [&](const Value<S>& x) { return kimi_delta_attention_of(x, o); });
}

}  // namespace fw::networks
