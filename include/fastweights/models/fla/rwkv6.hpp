#pragma once

#include <fastweights/layers/rwkv6.hpp>
#include <fastweights/models/fla/grouped_queries.hpp>

/// \file
/// The time mixing of RWKV-6 (layers/rwkv6.hpp) from its arguments in config.json.

namespace fw::inline FASTWEIGHTS_ABI::models::fla {

/// The layer, from its arguments in config.json.
template <class S> Network<S> rwkv6(const Config& c) {
  const Index heads = c.size("num_heads", 4);
  const Rwkv6Options o{.heads = heads,
                       .d_k = head_size(c, "expand_k", 0.5, heads),
                       .d_v = head_size(c, "expand_v", 1, heads),
                       .mix_rank = c.size("proj_low_rank_dim", 32),
                       .decay_rank = c.size("gate_low_rank_dim", 64),
                       .gate = activation_named(c, "gate_fn", "swish"),
                       .norm = output_norm(c)};
  return layer<S>(c, [&](const Value<S>& x) { return networks::rwkv6(x, "", o); });
}

}  // namespace fw::models::fla
