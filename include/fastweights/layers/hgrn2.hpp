#pragma once

#include <fastweights/any_memory/table/gated.hpp>
#include <fastweights/layers/parts.hpp>
#include <optional>

/// \file
/// HGRN2: Qin et al. 2024, arXiv 2404.07904. For a token and a head:
///
///     q = silu(W_q x)     α = l + (1 − l) σ(W_f x)     k = 1 − α     v = W_i x
///     W ← W diag(α) + v kᵀ     o = W q / √d_k     y = W_o (w ⊙ rms(o))
///
/// The norm is over all heads at once. With a convolution the projections of x are convolved.

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// Options of hgrn2.
struct Hgrn2Options {
  Index heads = 1, d_k = 128, d_v = 128;  ///< heads, and the rows of a key and of a value
  ShortConvolution convolution = {.kernel = 0};
  OutputNorm norm = {};
};

/// y of the equations, with as many rows as x. `lower_bound` is l, one for every key row; absent:
/// 0. Cost: 5 d_k d_v a head and token, and the maps.
template <class S>
Value<S> hgrn2(const Value<S>& in, const std::string& name, const Hgrn2Options& o,
               const std::optional<Value<S>>& lower_bound = {}) {
  return module(name, in, [&](const Value<S>& x) {
    const Value<S> q = silu(convolved(x, "q", o.heads * o.d_k, o.convolution));
    Value<S> decay = sigmoid(convolved(x, "f", o.heads * o.d_k, o.convolution));
    if (lower_bound) decay = decay * (1.0 - *lower_bound) + *lower_bound;
    const Value<S> v = convolved(x, "i", o.heads * o.d_v, o.convolution);
    const Value<S> y = memory(GatedLinearAttention<S>({o.d_k, o.d_v}), {1.0 - decay, v, decay},
                              {(1 / std::sqrt(double(o.d_k))) * q});
    return gated_output(x, y, "g_norm", 1, o.norm, Activation::none);
  });
}

}  // namespace fw::networks
