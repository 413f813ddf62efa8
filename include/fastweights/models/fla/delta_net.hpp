#pragma once

#include <fastweights/layers/delta_net.hpp>
#include <fastweights/models/fla/parts.hpp>

/// \file
/// DeltaNet (layers/delta_net.hpp) from its arguments in config.json.

namespace fw::inline FASTWEIGHTS_ABI::models::fla {

/// Its options, for x of d rows.
inline DeltaNetOptions delta_net_options(const Config& c, Index d) {
  const Index heads = c.size("num_heads");
  const Index keys = expanded(c, "expand_k", d), values = expanded(c, "expand_v", d);
  if (keys % heads != 0 || values % heads != 0)
    c.fail("num_heads", "does not divide the sizes of keys and values");
  c.expect("qk_activation", {"silu", "relu", "elu", "identity"});
  c.expect("qk_norm", {"l2", "sum"});
  const std::string activation = c.text("qk_activation", "silu");
  return {.heads = heads,
          .d_k = keys / heads,
          .d_v = values / heads,
          .convolution = short_convolution(c),
          .key_activation = activation == "silu"   ? Activation::silu
                            : activation == "relu" ? Activation::relu
                            : activation == "elu"  ? Activation::elu_plus_one
                                                   : Activation::none,
          .sum_to_one = c.text("qk_norm", "l2") == "sum",
          .learns_strength = c.flag("use_beta", true),
          .negative_eigenvalues = c.flag("allow_neg_eigval"),
          .gate = gate_if(c.flag("use_gate")),
          .norm = output_norm(c)};
}

/// The layer, from its arguments in config.json.
template <class S> Network<S> delta_net(const Config& c) {
  return layer<S>(
      c,
      [&](const Value<S>& x) { return networks::delta_net(x, "", delta_net_options(c, x.rows())); },
      c.has("d_model") ? "d_model" : "hidden_size");
}

}  // namespace fw::models::fla
