#pragma once

#include <fastweights/any_memory/table/state_spaces.hpp>
#include <fastweights/layers/parts.hpp>
#include <optional>

/// \file
/// Gated slot attention: Zhang et al. 2024, arXiv 2409.07146. For a token and a query head:
///
///     q, k = φ(W x)     v = silu(W_v x)     α = σ(W_f x)^{1/n}     s = 1 − α
///     K ← diag(α) K + s kᵀ     V ← V diag(α) + v sᵀ     o = V softmax(c K q)
///     y = W_o (w ⊙ rms(silu(o)))
///
/// The norm is over all heads at once. With a convolution, W x is silu(conv(W x)) instead.

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// Options of gated_slot_attention.
struct GatedSlotAttentionOptions {
  QueryHeads heads;  ///< heads · d_v rows, as many as x if the norm is affine
  Index slots = 64;  ///< rows of K
  ShortConvolution convolution = {.kernel = 0};
  Activation feature_map = Activation::silu;  ///< φ
  bool learned_map = false;  ///< φ(x) is of W_φ x: Kasai et al. 2021, arXiv 2103.13076, eq. 5
  double normaliser = 8;     ///< n
  std::optional<double> scale = {};  ///< c; absent: 1/√d_k
  OutputNorm norm = {};
};

/// φ of queries or keys. All heads share W_φ.
template <class S>
Value<S> slot_features(const Value<S>& x, Index heads, const GatedSlotAttentionOptions& o) {
  if (!o.learned_map) return activation(x, o.feature_map);
  const Index d = x.rows_of_part(heads);
  std::vector<Value<S>> parts;
  for (Index h = 0; h < heads; ++h)
    parts.push_back(linear(x.rows_of(h * d, d), "feature_map.layer", d));
  return activation(concatenate(parts), o.feature_map);
}

/// y of the equations, with as many rows as x. Cost: 5 slots (d_k + d_v) a head and token, and the
/// maps.
template <class S>
Value<S> gated_slot_attention(const Value<S>& in, const std::string& name,
                              const GatedSlotAttentionOptions& o) {
  return module(name, in, [&](const Value<S>& x) {
    const QueryHeads& h = o.heads;
    const Value<S> q =
        slot_features(maybe_activated(x, "q", h.queries(), o.convolution), h.heads, o);
    const Value<S> k =
        slot_features(maybe_activated(x, "k", h.keys(), o.convolution), h.kv_heads, o);
    const Value<S> v = silu(maybe_activated(x, "v", h.values(), o.convolution));
    const Value<S> decay = exp(log_gate(project(x, "f", h.kv_heads * o.slots), o.normaliser));
    const double scale = o.scale.value_or(1 / std::sqrt(double(h.d_k)));
    const Value<S> y = memory(GatedSlotAttention<S>({h.d_k, h.d_v}, o.slots),
                              {k, v, 1.0 - decay, decay}, {scale * q});
    return gated_output(x, silu(y), "g_norm", 1, o.norm, Activation::none);
  });
}

}  // namespace fw::networks
