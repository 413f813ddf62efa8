#pragma once

#include <fastweights/layers/comba.hpp>
#include <fastweights/models/fla/parts.hpp>

/// \file
/// Comba (layers/comba.hpp) from its arguments in config.json.

namespace fw::inline FASTWEIGHTS_ABI::models::fla {

/// The layer, from its arguments in config.json.
template <class S> Network<S> comba(const Config& c) {
  const CombaOptions o{.heads = grouped_heads(c, 2),
                       .convolution = short_convolution(c),
                       .inner_decay = c.flag("use_inner_decay", true),
                       .output_correction = c.flag("use_output_correction", true),
                       .initial_correction = c.number("correction_factor", 1),
                       .gate = gate_if(c.flag("use_output_gate", true), Activation::sigmoid),
                       .norm = output_norm(c)};
  return layer<S>(c, [&](const Value<S>& x) { return networks::comba(x, "", o); });
}

}  // namespace fw::models::fla
