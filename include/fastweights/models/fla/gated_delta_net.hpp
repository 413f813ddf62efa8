#pragma once

#include <fastweights/layers/gated_delta_net.hpp>
#include <fastweights/models/fla/parts.hpp>

/// \file
/// Gated DeltaNet (layers/gated_delta_net.hpp) from its arguments in config.json.

namespace fw::inline FASTWEIGHTS_ABI::models::fla {

/// The layer, from its arguments in config.json.
template <class S> Network<S> gated_delta_net(const Config& c) {
  return layer<S>(c, [&](const Value<S>& x) {
    return networks::gated_delta_net(x, "",
                                     {.heads = grouped_heads(c, 2),
                                      .convolution = short_convolution(c),
                                      .negative_eigenvalues = c.flag("allow_neg_eigval"),
                                      .gate = gate_if(c.flag("use_gate", true)),
                                      .norm = output_norm(c)});
  });
}

}  // namespace fw::models::fla
