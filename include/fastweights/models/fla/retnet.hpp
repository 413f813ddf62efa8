#pragma once

#include <fastweights/any_memory/table/gated.hpp>
#include <fastweights/models/fla/grouped_queries.hpp>
#include <fastweights/networks/operations/constants.hpp>

/// \file
/// Multi-scale retention: Sun et al. 2023, arXiv 2307.08621, eq. 6 and 8. For a token and the h-th
/// query head, h from 0:
///
///     q, k, v = W x     q, k ← rotated by their positions, θ = 10000
///     W ← γ_h W + v kᵀ,   γ_h = 1 − 2^{−5−h}     o = W q / √d_k
///     y = W_o (w ⊙ rms(o) ⊙ silu(W_g x))
///
/// With use_short_conv q, k, v = silu(conv(W x)); with a feature_map φ, φ(q) and φ(k) are rotated.
/// gate_fn names the function of the gate. As query heads decay at rates of their own, they do not
/// share states if they share keys.

namespace fw::inline FASTWEIGHTS_ABI::models::fla {

/// y of the equations.
template <class S> Value<S> retnet_of(const Value<S>& x, const Config& c) {
  const GroupedQueries h = grouped_queries(c, 8, 1, 2);
  if (h.d_k % 2 != 0) c.fail("expand_k", "expected an even number of entries in a head");
  const auto rotated = [&](const std::string& name, Index heads) {
    return rotate(mapped(maybe_activated(x, c, name, heads * h.d_k), c), heads, h.d_k, 10000);
  };
  const Value<S> q = rotated("q", h.heads), k = rotated("k", h.kv_heads);
  const Value<S> v = maybe_activated(x, c, "v", h.values());
  std::vector<double> decays;
  for (Index i = 0; i < h.heads; ++i) decays.push_back(1 - std::exp2(-5 - double(i)));
  const Value<S> o = memory(
      GatedLinearAttention<S, Dynamic, Dynamic, KeyValueDecay>({h.d_k, h.d_v}),
      {k, v, constants(*x.builder, std::move(decays))}, {(1 / std::sqrt(double(h.d_k))) * q});
  return gated_output(x, o, h.heads, c);
}

/// The layer, from its arguments in config.json.
template <class S> Network<S> retnet(const Config& c) {
  return layer<S>(c, [&](const Value<S>& x) { return retnet_of(x, c); });
}

}  // namespace fw::models::fla
