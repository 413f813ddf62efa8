#pragma once

#include <fastweights/models/fla/parts.hpp>
#include <fastweights/models/rwkv7_time_mix.hpp>

/// \file
/// The time mixing of RWKV-7 as a layer of its own: Peng et al. 2025, arXiv 2503.14456. Its
/// equations are in models/rwkv7_time_mix.hpp. The inputs of a token are x and, below it, v_first,
/// the values of a model's first layer; the layer with layer_idx 0 has no second input.

namespace fw::inline FASTWEIGHTS_ABI::models::fla {

/// The layer, from its arguments in config.json.
template <class S> Network<S> rwkv7(const Config& c) {
  c.expect("mode", {"chunk", "fused_recurrent"});
  const Index d = c.size("hidden_size");
  Rwkv7Options o = rwkv7_heads(c, "value_dim", c.size("value_dim", d));
  set_rwkv7_ranks(o, c);
  o.epsilon = double(o.d_k) * c.number("norm_eps", 1e-5);
  o.affine = is_affine(c);
  o.smooth_unit = c.flag("fuse_norm");
  const bool is_first = c.has("layer_idx") && c.count("layer_idx") == 0;

  Builder<S> net;
  const Value<S> in = net.input(d + (is_first ? 0 : o.values()));
  std::optional<Value<S>> v_first;
  if (!is_first) v_first = in.rows_of(d, o.values());
  return net.build(networks::rwkv7(in.rows_of(0, d), "", o, v_first));
}

}  // namespace fw::models::fla
