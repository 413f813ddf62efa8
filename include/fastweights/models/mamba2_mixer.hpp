#pragma once

#include <fastweights/layers/mamba2.hpp>
#include <fastweights/models/parts.hpp>

/// \file
/// Options of the mixer of Mamba-2 (layers/mamba2.hpp) in config.json, as hybrid models name them.

namespace fw::inline FASTWEIGHTS_ABI::models {

/// Sets the limits of Δ, if config.json has them.
inline void set_step_limits(Mamba2Options& mixer, const Config& c) {
  if (!c.has("time_step_limit")) return;
  const std::vector<double> limits = c.limits("time_step_limit");
  if (limits.size() != 2 || !(0 <= limits[0] && limits[0] <= limits[1]))
    c.fail("time_step_limit", "expected two numbers of at least 0, the smaller first");
  mixer.least_step = limits[0];
  mixer.most_step = limits[1];
}

/// The mixer of Bamba, Granite and Falcon-H1, whose sizes have the same names. `values` are those
/// of all heads.
inline Mamba2Options hybrid_mixer(const Config& c, Index values) {
  const Index heads = c.size("mamba_n_heads");
  // "auto" is what the heads make of the values.
  const Index d_v = c.is_text("mamba_d_head", "auto") ? std::max<Index>(values / heads, 1)
                                                      : c.size("mamba_d_head", values / heads);
  if (d_v * heads != values) c.fail("mamba_n_heads", "expected heads that divide the values");
  Mamba2Options mixer{.heads = heads,
                      .d_v = d_v,
                      .groups = c.size("mamba_n_groups", 1),
                      .d_k = c.size("mamba_d_state"),
                      .kernel = c.size("mamba_d_conv", 4),
                      .in_bias = c.flag("mamba_proj_bias"),
                      .conv_bias = c.flag("mamba_conv_bias", true),
                      .out_bias = c.flag("mamba_proj_bias"),
                      .epsilon = c.number("rms_norm_eps")};
  set_step_limits(mixer, c);
  return mixer;
}

}  // namespace fw::models
