#pragma once

#include <fastweights/any_memory/table/gated.hpp>
#include <fastweights/layers/parts.hpp>
#include <optional>

/// \file
/// Gated linear attention: Yang, Wang, Shen, Panda, Kim 2023, arXiv 2312.06635, section 4. For a
/// token and a query head:
///
///     q, k, v = W x     α = exp(max(log σ(W_2 W_1 x + b) / n, c))
///     W ← W diag(α) + v kᵀ     o = W q / √d_k
///     y = W_o (w ⊙ rms(o) ⊙ silu(W_g x))
///
/// With a convolution q, k, v = silu(conv(W x)); with a feature map φ, φ(q) and φ(k) are used.

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// Options of gated_linear_attention.
struct GatedLinearAttentionOptions {
  QueryHeads heads;
  ShortConvolution convolution = {.kernel = 0};
  Activation feature_map = Activation::none;   ///< φ
  Index decay_rank = 16;                       ///< rows of W_1
  double normaliser = 16;                      ///< n
  std::optional<double> least_log_decay = {};  ///< c, at most 0; absent: −∞
  Activation gate = Activation::silu;          ///< of the output; none: without W_g
  OutputNorm norm = {};
  std::string norm_name = "g_norm";  ///< of w
};

/// y of the equations, with as many rows as x. Cost: 5 d_k d_v a head and token, and the maps.
template <class S>
Value<S> gated_linear_attention(const Value<S>& in, const std::string& name,
                                const GatedLinearAttentionOptions& o) {
  return module(name, in, [&](const Value<S>& x) {
    const QueryHeads& h = o.heads;
    const Value<S> q =
        activation(maybe_activated(x, "q", h.queries(), o.convolution), o.feature_map);
    const Value<S> k = activation(maybe_activated(x, "k", h.keys(), o.convolution), o.feature_map);
    const Value<S> v = maybe_activated(x, "v", h.values(), o.convolution);
    Value<S> log_decay = log_gate(low_rank(x, "gk", o.decay_rank, h.keys(), true), o.normaliser);
    if (o.least_log_decay) log_decay = clamp(log_decay, *o.least_log_decay, 0);
    const Value<S> y = memory(GatedLinearAttention<S>({h.d_k, h.d_v}), {k, v, exp(log_decay)},
                              {(1 / std::sqrt(double(h.d_k))) * q});
    return gated_output(x, y, o.norm_name, h.heads, o.norm, o.gate);
  });
}

}  // namespace fw::networks
