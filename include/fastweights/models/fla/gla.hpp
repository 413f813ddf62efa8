#pragma once

#include <fastweights/layers/gated_linear_attention.hpp>
#include <fastweights/models/fla/grouped_queries.hpp>

/// \file
/// Gated linear attention (layers/gated_linear_attention.hpp) from its arguments in config.json.

namespace fw::inline FASTWEIGHTS_ABI::models::fla {

/// Its options.
inline GatedLinearAttentionOptions gla_options(const Config& c) {
  GatedLinearAttentionOptions o{.heads = grouped_queries(c, 4, 0.5, 1),
                                .convolution = short_convolution(c, false),
                                .feature_map = feature_map(c),
                                .decay_rank = c.size("gate_low_rank_dim", 16),
                                .normaliser = gate_normaliser(c, 16)};
  if (c.has("clamp_min")) o.least_log_decay = c.number("clamp_min");
  if (o.least_log_decay && !(*o.least_log_decay <= 0)) c.fail("clamp_min", "expected at most 0");
  set_gated_output(o, c);
  return o;
}

/// The layer, from its arguments in config.json.
template <class S> Network<S> gla(const Config& c) {
  return layer<S>(c,
                  [&](const Value<S>& x) { return gated_linear_attention(x, "", gla_options(c)); });
}

}  // namespace fw::models::fla
