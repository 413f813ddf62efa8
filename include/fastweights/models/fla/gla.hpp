#pragma once

#include <fastweights/any_memory/table/gated.hpp>
#include <fastweights/models/fla/grouped_queries.hpp>
#include <fastweights/networks/operations/clamp.hpp>

/// \file
/// Gated linear attention: Yang, Wang, Shen, Panda, Kim 2023, arXiv 2312.06635, section 4. For a
/// token and a query head:
///
///     q, k, v = W x     α = exp(max(log σ(W_2 W_1 x + b) / n, c))
///     W ← W diag(α) + v kᵀ     o = W q / √d_k
///     y = W_o (w ⊙ rms(o) ⊙ silu(W_g x))
///
/// W_1 has rank gate_low_rank_dim, n is gate_logit_normalizer, c is clamp_min (absent: −∞). With
/// use_short_conv q, k, v = silu(conv(W x)); with a feature_map φ, φ(q) and φ(k) are used. gate_fn
/// names the function of the gate.

namespace fw::inline FASTWEIGHTS_ABI::models::fla {

/// y of the equations.
template <class S> Value<S> gla_of(const Value<S>& x, const Config& c) {
  const GroupedQueries h = grouped_queries(c, 4, 0.5, 1);
  const Value<S> q = mapped(maybe_activated(x, c, "q", h.queries()), c);
  const Value<S> k = mapped(maybe_activated(x, c, "k", h.keys()), c);
  const Value<S> v = maybe_activated(x, c, "v", h.values());
  Value<S> log_decay =
      log_gate(low_rank(x, "gk", c.size("gate_low_rank_dim", 16), h.keys(), true), c, 16);
  if (c.has("clamp_min")) {
    const double least = c.number("clamp_min");
    if (!(least <= 0)) c.fail("clamp_min", "expected at most 0");
    log_decay = clamp(log_decay, least, 0);
  }
  const Value<S> o = memory(GatedLinearAttention<S>({h.d_k, h.d_v}), {k, v, exp(log_decay)},
                            {(1 / std::sqrt(double(h.d_k))) * q});
  return gated_output(x, o, h.heads, c);
}

/// The layer, from its arguments in config.json.
template <class S> Network<S> gla(const Config& c) {
  return layer<S>(c, [&](const Value<S>& x) { return gla_of(x, c); });
}

}  // namespace fw::models::fla
