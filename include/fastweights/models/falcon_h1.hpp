#pragma once

#include <fastweights/models/grouped_attention.hpp>
#include <fastweights/models/layer_kinds.hpp>
#include <fastweights/models/mamba2_mixer.hpp>
#include <fastweights/models/rope.hpp>

/// \file
/// Falcon-H1: in every layer Mamba-2's mixer and attention see the same tokens side by side. Zuo et
/// al. 2025, arXiv 2507.22448, section 2.
///
///     n = rms(x)     h = x + a mixer(n) + b attention(c n)     y = h + feed_forward(rms(h))
///
/// with numbers a, b, c, and more of them: the multipliers of config.json.

namespace fw::inline FASTWEIGHTS_ABI::models {

/// A list of `count` multipliers; empty if config.json has none.
inline std::vector<double> falcon_multipliers(const Config& c, const std::string& name,
                                              std::size_t count) {
  if (!c.has(name)) return {};
  const std::vector<double> factors = c.numbers(name);
  if (factors.size() != count) c.fail(name, "expected " + std::to_string(count) + " numbers");
  return factors;
}

/// The norm is optional, and may be before the gate.
inline Mamba2Options falcon_mixer(const Config& c) {
  Mamba2Options mixer =
      hybrid_mixer(c, c.size("mamba_d_ssm", c.size("mamba_expand", 2) * c.size("hidden_size")));
  mixer.out_bias = c.flag("projectors_bias");
  if (!c.flag("mamba_rms_norm"))
    mixer.norm = GatedNorm::none;
  else if (c.flag("mamba_norm_before_gate", true))
    mixer.norm = GatedNorm::before_gate;
  mixer.in_factor = c.number("ssm_in_multiplier", 1);
  mixer.factors = falcon_multipliers(c, "ssm_multipliers", 5);
  return mixer;
}

/// The options of its attention.
inline GroupedAttention falcon_attention_options(const Config& c, const ModelOptions& options) {
  GroupedAttention o = grouped_attention_options(c, options);
  o.theta = RopeOptions(c).theta_of_whole_heads(10000);
  o.key_factor = c.number("key_multiplier", 1);
  return o;
}

/// The gated feed-forward layer, with its multipliers.
template <class S> Value<S> falcon_mlp(const Value<S>& x, const Config& c) {
  const std::vector<double> given = falcon_multipliers(c, "mlp_multipliers", 2);
  const double of_gate = given.empty() ? 1 : given[0], of_down = given.empty() ? 1 : given[1];
  const Index hidden = c.size("intermediate_size");
  const bool bias = c.flag("mlp_bias");
  const Value<S> gate = silu(of_gate * linear(x, "gate_proj", hidden, bias));
  return of_down * linear(gate * linear(x, "up_proj", hidden, bias), "down_proj", x.rows(), bias);
}

/// The whole model. `prefix` is in front of all names but that of lm_head.
template <class S>
Network<S> falcon_h1(const Config& c, const ModelOptions& options = {},
                     const std::string& prefix = "model") {
  c.expect("hidden_act", {"silu", "swish"});
  const Mamba2Options mixer = falcon_mixer(c);
  const GroupedAttention attention = falcon_attention_options(c, options);
  const NormOptions norm{.epsilon = c.number("rms_norm_eps")};
  const auto factor = [&](const char* name) { return c.number(name, 1); };
  const bool tied = is_tied(c, options);
  Builder<S> net;
  net.enter(prefix);
  Value<S> x = factor("embedding_multiplier") * token_embedding(net, c, "embed_tokens");
  for (Index l = 0; l < layer_count(c); ++l)
    x = module("layers." + std::to_string(l), x, [&](const Value<S>& in) {
      const Value<S> n = rms_norm(in, "input_layernorm", norm);
      const Value<S> mixed = networks::mamba2(n, "mamba", mixer);
      const Value<S> read =
          module("self_attn", factor("attention_in_multiplier") * n,
                 [&](const Value<S>& y) { return grouped_attention(y, attention); });
      const Value<S> h =
          in + factor("ssm_out_multiplier") * mixed + factor("attention_out_multiplier") * read;
      return h + module("feed_forward", rms_norm(h, "pre_ff_layernorm", norm),
                        [&](const Value<S>& y) { return falcon_mlp(y, c); });
    });
  x = rms_norm(x, "final_layernorm", norm);
  return net.build(factor("lm_head_multiplier") * logits(x, c, tied ? "embed_tokens" : ""));
}

}  // namespace fw::models
