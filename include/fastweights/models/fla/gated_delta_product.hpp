#pragma once

#include <fastweights/layers/gated_delta_product.hpp>
#include <fastweights/models/fla/parts.hpp>

/// \file
/// Gated DeltaProduct (layers/gated_delta_product.hpp) from its arguments in config.json.

namespace fw::inline FASTWEIGHTS_ABI::models::fla {

/// The layer, from its arguments in config.json.
template <class S> Network<S> gated_delta_product(const Config& c) {
  const Index writes = c.size("num_householder", 2);
  if (writes > 4) c.fail("num_householder", "supported are 1 to 4");
  const GatedDeltaProductOptions o{.heads = grouped_heads(c, 2),
                                   .writes = writes,
                                   .convolution = short_convolution(c),
                                   .negative_eigenvalues = c.flag("allow_neg_eigval", true),
                                   .forgets = c.flag("use_forget_gate", true),
                                   .gate = gate_if(c.flag("use_output_gate", true)),
                                   .norm = output_norm(c)};
  return layer<S>(c, [&](const Value<S>& x) { return networks::gated_delta_product(x, "", o); });
}

}  // namespace fw::models::fla
