#pragma once

#include <fastweights/layers/mesa_net.hpp>
#include <fastweights/models/fla/parts.hpp>

/// \file
/// MesaNet (layers/mesa_net.hpp) from its arguments in config.json. The source solves by at most
/// max_cg_step steps of conjugate gradients, this by a decomposition. As there, queries and keys
/// have their convolutions whatever use_short_conv says.

namespace fw::inline FASTWEIGHTS_ABI::models::fla {

/// The layer, from its arguments in config.json.
template <class S> Network<S> mesa_net(const Config& c) {
  const double least_ridge = c.number("lambda_lower_bound", 0.25);
  if (!(least_ridge >= 0)) c.fail("lambda_lower_bound", "expected at least 0");
  const MesaNetOptions o{
      .heads = c.size("num_heads"),
      .d = c.size("head_dim"),
      .convolution = {.kernel = c.size("conv_size", 4), .bias = c.flag("conv_bias")},
      .least_ridge = least_ridge,
      .gate = gate_if(c.flag("use_output_gate")),
      .norm = output_norm(c)};
  return layer<S>(c, [&](const Value<S>& x) { return networks::mesa_net(x, "", o); });
}

}  // namespace fw::models::fla
