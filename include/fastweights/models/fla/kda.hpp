#pragma once

#include <fastweights/layers/kimi_delta_attention.hpp>
#include <fastweights/models/fla/parts.hpp>

/// \file
/// Kimi delta attention as a layer of its own, with grouped value heads: Kimi Team 2025, arXiv
/// 2510.26692. Its equations are in layers/kimi_delta_attention.hpp; W_f and W_g have rank d_v.

namespace fw::inline FASTWEIGHTS_ABI::models::fla {

/// The layer, from its arguments in config.json.
template <class S> Network<S> kda(const Config& c) {
  const Heads h = grouped_heads(c, 1);
  KimiDeltaAttentionOptions options{
      .key_heads = h.key_heads,
      .heads = h.heads,
      .d_k = h.d_k,
      .d_v = h.d_v,
      .kernel = c.flag("use_short_conv", true) ? c.size("conv_size", 4) : 0,
      .conv_bias = c.flag("conv_bias"),
      .negative_eigenvalues = c.flag("allow_neg_eigval"),
      .epsilon = c.number("norm_eps", 1e-5),
      .forget = {"f_proj.0", "f_proj.1", h.d_v},
      .gate = {"g_proj.0", "g_proj.1", h.d_v, true}};
  // safe_gate promises the source's kernel that there is a bound, and changes nothing else.
  if (c.flag("safe_gate") && !c.has("lower_bound")) c.fail("lower_bound", "safe_gate needs one");
  if (c.has("lower_bound")) options.lower_bound = c.number("lower_bound");
  return layer<S>(c, [&](const Value<S>& x) { return kimi_delta_attention(x, "", options); });
}

}  // namespace fw::models::fla
