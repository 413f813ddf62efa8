#pragma once

#include <fastweights/layers/gated_slot_attention.hpp>
#include <fastweights/models/fla/grouped_queries.hpp>

/// \file
/// Gated slot attention (layers/gated_slot_attention.hpp) from its arguments in config.json. As in
/// the source, use_norm and use_output_gate change nothing.

namespace fw::inline FASTWEIGHTS_ABI::models::fla {

/// Its options. The map "t2r" is learned.
inline GatedSlotAttentionOptions gsa_options(const Config& c) {
  c.expect("feature_map", {"swish", "relu", "t2r"});
  const std::string map = c.text("feature_map", "swish");
  GatedSlotAttentionOptions o{.heads = grouped_queries(c, 4, 1, 1),
                              .convolution = short_convolution(c, false),
                              .feature_map = map == "swish" ? Activation::silu : Activation::relu,
                              .learned_map = map == "t2r",
                              .normaliser = gate_normaliser(c, 8),
                              .norm = output_norm(c)};
  o.slots = c.size("num_slots", o.heads.d_k);
  if (!c.is_null("scale")) o.scale = c.number("scale", 1);
  if (o.norm.affine && o.heads.outputs() != c.size("hidden_size"))
    c.fail("expand_v", "the norm's weights need 1");
  return o;
}

/// The layer, from its arguments in config.json.
template <class S> Network<S> gsa(const Config& c) {
  return layer<S>(c,
                  [&](const Value<S>& x) { return gated_slot_attention(x, "", gsa_options(c)); });
}

}  // namespace fw::models::fla
