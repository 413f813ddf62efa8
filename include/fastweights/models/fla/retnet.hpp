#pragma once

#include <fastweights/layers/retnet.hpp>
#include <fastweights/models/fla/grouped_queries.hpp>

/// \file
/// Retention (layers/retnet.hpp) from its arguments in config.json.

namespace fw::inline FASTWEIGHTS_ABI::models::fla {

/// Its options.
inline RetentionOptions retention_options(const Config& c) {
  RetentionOptions o{.heads = grouped_queries(c, 8, 1, 2),
                     .convolution = short_convolution(c, false),
                     .feature_map = feature_map(c)};
  if (o.heads.d_k % 2 != 0) c.fail("expand_k", "expected an even number of entries in a head");
  set_gated_output(o, c);
  return o;
}

/// The layer, from its arguments in config.json.
template <class S> Network<S> retnet(const Config& c) {
  return layer<S>(c, [&](const Value<S>& x) { return retention(x, "", retention_options(c)); });
}

}  // namespace fw::models::fla
