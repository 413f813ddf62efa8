#pragma once

#include <fastweights/layers/mamba.hpp>
#include <fastweights/models/layer_kinds.hpp>
#include <fastweights/models/parts.hpp>

/// \file
/// Mamba as a language model: Gu & Dao 2023, arXiv 2312.00752; and Falcon-Mamba, whose mixers have
/// norms without weights: Zuo et al. 2024, arXiv 2410.05355. For every layer:
///
///     y = x + mixer(rms(x))

namespace fw::inline FASTWEIGHTS_ABI::models {

/// The rank of δ: a size, or "auto" for hidden_size / 16, rounded up.
inline Index mamba_rank(const Config& c, const std::string& name) {
  if (!c.has(name) || c.is_text(name, "auto")) return (c.size("hidden_size") + 15) / 16;
  return c.size(name);
}

/// The channels: intermediate_size, or expand times hidden_size.
inline Index mamba_channels(const Config& c) {
  if (c.has("intermediate_size")) return c.size("intermediate_size");
  const double exact = std::trunc(c.number("expand", 2) * double(c.size("hidden_size")));
  return c.computed_size("expand", exact, "hidden_size");
}

/// The options of a model's mixers. Options of time_step_… draw weights and change no number.
inline MambaOptions mamba_options(const Config& c) {
  c.expect("hidden_act", {"silu", "swish"});
  return {.channels = mamba_channels(c),
          .d_k = c.size("state_size", 16),
          .rank = mamba_rank(c, "time_step_rank"),
          .kernel = c.size("conv_kernel", 4),
          .bias = c.flag("use_bias"),
          .conv_bias = c.flag("use_conv_bias", true)};
}

/// A model of these mixers.
template <class S>
Network<S> model_of_mamba(const Config& c, const ModelOptions& options, const std::string& prefix,
                          const MambaOptions& mixer) {
  check_states(c, "state_size", double(mixer.channels) * double(mixer.d_k));
  const NormOptions norm{.epsilon = c.number("layer_norm_epsilon", 1e-5)};
  const bool tied = is_tied(c, options, true);
  Builder<S> net;
  net.enter(prefix);
  Value<S> x = embedding(net, "embeddings", c.size("vocab_size"), c.size("hidden_size"));
  for (Index l = 0; l < layer_count(c); ++l)
    x = module("layers." + std::to_string(l), x, [&](const Value<S>& in) {
      return in + networks::mamba(rms_norm(in, "norm", norm), "mixer", mixer);
    });
  x = rms_norm(x, "norm_f", norm);
  return net.build(logits(x, c, tied ? "embeddings" : ""));
}

/// The whole model. `prefix` is in front of all names but that of lm_head.
template <class S>
Network<S> mamba(const Config& c, const ModelOptions& options = {},
                 const std::string& prefix = "backbone") {
  return model_of_mamba<S>(c, options, prefix, mamba_options(c));
}

/// Falcon-Mamba. `prefix` is in front of all names but that of lm_head.
template <class S>
Network<S> falcon_mamba(const Config& c, const ModelOptions& options = {},
                        const std::string& prefix = "backbone") {
  MambaOptions mixer = mamba_options(c);
  mixer.norms = MambaNorms::plain;
  mixer.epsilon = c.number("mixer_rms_eps", 1e-6);
  return model_of_mamba<S>(c, options, prefix, mixer);
}

}  // namespace fw::models
