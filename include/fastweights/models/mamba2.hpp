#pragma once

#include <fastweights/models/layer_kinds.hpp>
#include <fastweights/models/mamba2_mixer.hpp>

/// \file
/// Mamba-2 as a language model: Dao, Gu 2024, arXiv 2405.21060. For every layer:
///
///     y = x + mixer(rms(x))

namespace fw::inline FASTWEIGHTS_ABI::models {

/// The options of a Mamba-2 model's mixers.
inline Mamba2Options mamba2_options(const Config& c) {
  Mamba2Options mixer{.heads = c.size("num_heads"),
                      .d_v = c.size("head_dim"),
                      .groups = c.size("n_groups"),
                      .d_k = c.size("state_size"),
                      .kernel = c.size("conv_kernel"),
                      .in_bias = c.flag("use_bias"),
                      .conv_bias = c.flag("use_conv_bias", true),
                      .out_bias = c.flag("use_bias"),
                      .epsilon = c.number("layer_norm_epsilon")};
  set_step_limits(mixer, c);
  return mixer;
}

/// The whole model. `prefix` is in front of all names but that of lm_head.
template <class S>
Network<S> mamba2(const Config& c, const ModelOptions& options = {},
                  const std::string& prefix = "backbone") {
  c.expect("hidden_act", {"silu", "swish"});
  c.expect_flag("rms_norm", true);
  const Mamba2Options mixer = mamba2_options(c);
  if (mixer.heads * mixer.d_v != c.size("expand", 2) * c.size("hidden_size"))
    c.fail("num_heads", "expected num_heads · head_dim = expand · hidden_size");
  const NormOptions norm{.epsilon = mixer.epsilon};
  const bool tied = is_tied(c, options);
  Builder<S> net;
  net.enter(prefix);
  Value<S> x = embedding(net, "embeddings", c.size("vocab_size"), c.size("hidden_size"));
  for (Index l = 0; l < layer_count(c); ++l)
    x = module("layers." + std::to_string(l), x, [&](const Value<S>& in) {
      return in + networks::mamba2(rms_norm(in, "norm", norm), "mixer", mixer);
    });
  x = rms_norm(x, "norm_f", norm);
  return net.build(logits(x, c, tied ? "embeddings" : ""));
}

}  // namespace fw::models
