#pragma once

#include <fastweights/layers/preconditioned_gated_delta_net.hpp>
#include <fastweights/models/fla/parts.hpp>

/// \file
/// Preconditioned Gated DeltaNet (layers/preconditioned_gated_delta_net.hpp) from its arguments in
/// config.json.

namespace fw::inline FASTWEIGHTS_ABI::models::fla {

/// The layer, from its arguments in config.json.
template <class S> Network<S> precond_gdn(const Config& c) {
  if (c.number("squash_x", 1.5) != 1.5) c.fail("squash_x", "supported is 1.5");
  if (c.number("squash_eps", 1e-6) != 1e-6) c.fail("squash_eps", "supported is 1e-6");
  const PreconditionedGatedDeltaNetOptions o{
      .heads = grouped_heads(c, 2),
      .convolution = short_convolution(c),
      .negative_eigenvalues = c.flag("allow_neg_eigval"),
      .initial_log_scale = c.number("log_atk_scale_init", -0.2),
      .gate = gate_if(c.flag("use_gate", true)),
      .norm = output_norm(c)};
  return layer<S>(c, [&](const Value<S>& x) { return preconditioned_gated_delta_net(x, "", o); });
}

}  // namespace fw::models::fla
