#pragma once

#include <fastweights/any_memory/table/gated.hpp>
#include <fastweights/layers/parts.hpp>

/// \file
/// Multi-scale retention: Sun et al. 2023, arXiv 2307.08621, eq. 6 and 8. For a token and the h-th
/// query head, h from 0:
///
///     q, k, v = W x     q, k ← rotated by their positions
///     W ← γ_h W + v kᵀ,   γ_h = 1 − 2^{−5−h}     o = W q / √d_k
///     y = W_o (w ⊙ rms(o) ⊙ silu(W_g x))
///
/// With a convolution q, k, v = silu(conv(W x)); with a feature map φ, φ(q) and φ(k) are rotated.
/// As query heads decay at rates of their own, they do not share states if they share keys.

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// Options of retention.
struct RetentionOptions {
  QueryHeads heads;  ///< d_k is even
  ShortConvolution convolution = {.kernel = 0};
  Activation feature_map = Activation::none;  ///< φ
  double theta = 10000;                       ///< of the rotation
  Activation gate = Activation::silu;         ///< of the output; none: without W_g
  OutputNorm norm = {};
  std::string norm_name = "g_norm";  ///< of w
};

/// y of the equations, with as many rows as x. Cost: 5 d_k d_v a head and token, and the maps.
template <class S>
Value<S> retention(const Value<S>& in, const std::string& name, const RetentionOptions& o) {
  return module(name, in, [&](const Value<S>& x) {
    const QueryHeads& h = o.heads;
    const auto rotated = [&](const std::string& map, Index heads) {
      const Value<S> y = maybe_activated(x, map, heads * h.d_k, o.convolution);
      return rotary_embedding(activation(y, o.feature_map), heads, h.d_k, o.theta);
    };
    const Value<S> q = rotated("q", h.heads), k = rotated("k", h.kv_heads);
    const Value<S> v = maybe_activated(x, "v", h.values(), o.convolution);
    std::vector<double> decays;
    for (Index i = 0; i < h.heads; ++i) decays.push_back(1 - std::exp2(-5 - double(i)));
    const Value<S> y = memory(
        GatedLinearAttention<S, Dynamic, Dynamic, KeyValueDecay>({h.d_k, h.d_v}),
        {k, v, constants(*x.builder, std::move(decays))}, {(1 / std::sqrt(double(h.d_k))) * q});
    return gated_output(x, y, o.norm_name, h.heads, o.norm, o.gate);
  });
}

}  // namespace fw::networks
