#pragma once

#include <fastweights/models/fla/parts.hpp>

/// \file
/// The common part of gated linear attention, retention and gated slot attention:
/// num_heads query heads, of which num_heads / num_kv_heads consecutive ones share keys and values.

namespace fw::inline FASTWEIGHTS_ABI::models::fla {

/// The size of one of `heads` heads that have `ratio` times hidden_size entries together, rounded
/// down as in the source.
inline Index head_size(const Config& c, const std::string& ratio, double otherwise, Index heads) {
  // Products such as 0.7 · 10 may be just below the whole number that is meant.
  const double exact = c.number(ratio, otherwise) * double(c.size("hidden_size"));
  const double nearest = std::round(exact);
  const double all = std::abs(exact - nearest) <= 1e-9 * nearest ? nearest : std::trunc(exact);
  const Index rows = c.computed_size(ratio, all, "hidden_size");
  if (rows % heads != 0)
    c.fail(ratio, "times hidden_size is not a multiple of num_heads = " + std::to_string(heads));
  return rows / heads;
}

/// The sizes of config.json, with these defaults.
inline QueryHeads grouped_queries(const Config& c, Index usual_heads, double expand_k,
                                  double expand_v) {
  const Index heads = c.size("num_heads", usual_heads), kv_heads = c.size("num_kv_heads", heads);
  if (heads % kv_heads != 0) c.fail("num_kv_heads", "expected a divisor of num_heads");
  return {heads, kv_heads, head_size(c, "expand_k", expand_k, heads),
          head_size(c, "expand_v", expand_v, heads)};
}

/// φ of queries and keys, if there is a feature_map.
inline Activation feature_map(const Config& c) {
  return c.has("feature_map") ? activation_named(c, "feature_map", "") : Activation::none;
}

/// gate_logit_normalizer
inline double gate_normaliser(const Config& c, double otherwise) {
  const double n = c.number("gate_logit_normalizer", otherwise);
  if (!(n > 0)) c.fail("gate_logit_normalizer", "expected a positive number");
  return n;
}

/// Sets the gate of the output, and the name of the norm's weights, which fuse_norm changes.
template <class Options> void set_gated_output(Options& o, const Config& c) {
  const bool is_gated = c.flag("use_output_gate", true);
  if (is_gated) o.gate = activation_named(c, "gate_fn", "swish");
  if (!is_gated) o.gate = Activation::none;
  const bool is_fused =
      is_gated && c.flag("fuse_norm", true) && c.text("gate_fn", "swish") == "swish";
  o.norm_name = is_fused ? "g_norm_swish_gate" : "g_norm";
  o.norm = output_norm(c);
}

}  // namespace fw::models::fla
