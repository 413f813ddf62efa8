#pragma once

#include <fastweights/layers/gated_delta_net_2.hpp>
#include <fastweights/models/fla/parts.hpp>

/// \file
/// Gated DeltaNet-2 (layers/gated_delta_net_2.hpp) from its arguments in config.json.

namespace fw::inline FASTWEIGHTS_ABI::models::fla {

/// The layer, from its arguments in config.json.
template <class S> Network<S> gdn2(const Config& c) {
  const GatedDeltaNet2Options o{.heads = grouped_heads(c, 1),
                                .convolution = short_convolution(c),
                                .negative_eigenvalues = c.flag("allow_neg_eigval"),
                                .norm = output_norm(c)};
  return layer<S>(c, [&](const Value<S>& x) { return gated_delta_net_2(x, "", o); });
}

}  // namespace fw::models::fla
