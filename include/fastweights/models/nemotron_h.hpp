#pragma once

#include <fastweights/models/grouped_attention.hpp>
#include <fastweights/models/layer_kinds.hpp>
#include <fastweights/models/mamba2_mixer.hpp>
#include <fastweights/models/sigmoid_routing.hpp>

/// \file
/// Nemotron-H: every layer is one of Mamba-2's mixer, attention without positions, a feed-forward
/// layer or experts, with the activation relu(x)². NVIDIA 2025, arXiv 2504.03624, section 2;
/// experts: NVIDIA 2025, arXiv 2512.20848.
///
///     y = x + mixer(rms(x))

namespace fw::inline FASTWEIGHTS_ABI::models {

/// relu(x)². So et al. 2021, arXiv 2109.08668, section 3.
struct SquaredRelu {
  /// y ← relu(x)².
  template <class X, class Y> static void value(const X& x, Y& y) {
    using S = typename X::Scalar;
    y.array() = x.array().max(S(0)).square();
  }
  /// dy ← dy ⊙ 2 relu(x)
  template <class X, class Dy> static void vjp(const X& x, Dy& dy) {
    using S = typename X::Scalar;
    dy.array() *= S(2) * x.array().max(S(0));
  }
};

/// Layers of the part that predicts several tokens, which the model itself does not have.
inline bool is_nemotron_extra(const std::string& name) { return name.starts_with("mtp"); }

/// The kinds of the layers: a list, or in older files a text with a letter for each.
inline std::vector<std::string> nemotron_layer_kinds(const Config& c) {
  std::vector<std::string> kinds;
  if (c.has("layers_block_type")) {
    for (const std::string& name : c.texts("layers_block_type")) kinds.push_back(layer_kind(name));
  } else {
    for (const char letter : c.text("hybrid_override_pattern"))
      kinds.push_back(letter == 'M'   ? "linear_attention"
                      : letter == '*' ? "full_attention"
                      : letter == 'E' ? "moe"
                      : letter == '-' ? "mlp"
                                      : std::string(1, letter));
  }
  if (kinds.empty()) c.fail("layers_block_type", "expected the kinds of the layers");
  return kinds;
}

/// The mixer. The only limit of Δ is time_step_min: published code does not use time_step_limit.
inline Mamba2Options nemotron_mixer(const Config& c) {
  return {.heads = c.size("mamba_num_heads"),
          .d_v = c.size("mamba_head_dim"),
          .groups = c.size("n_groups"),
          .d_k = c.size("ssm_state_size"),
          .kernel = c.size("conv_kernel"),
          .in_bias = c.flag("use_bias"),
          .conv_bias = c.flag("use_conv_bias", true),
          .out_bias = c.flag("use_bias"),
          .epsilon = c.number("layer_norm_epsilon"),
          .least_step = c.number("time_step_min", 0.001)};
}

/// A feed-forward layer with relu(x)².
template <class S> Value<S> nemotron_mlp(const Value<S>& x, Index hidden, bool bias) {
  return linear(square(relu(linear(x, "up_proj", hidden, bias))), "down_proj", x.rows(), bias);
}

/// Routed experts, which may see a projection to moe_latent_size, and one that all tokens share.
template <class S> Value<S> nemotron_experts(const Value<S>& x, const Config& c) {
  const Index all = c.size("n_routed_experts");
  const Choice choice{.experts = c.size("num_experts_per_tok"),
                      .groups = c.size("n_group", 1),
                      .best_groups = c.size("topk_group", 1)};
  const Value<S> routing = sigmoid_routing<S>(x, {.experts = all,
                                                  .choice = checked_choice(c, choice, all),
                                                  .renormalise = c.flag("norm_topk_prob", true),
                                                  .factor = c.number("routed_scaling_factor", 1)});
  const bool bias = c.flag("mlp_bias"), latent = c.has("moe_latent_size");
  Value<S> routed = latent ? linear(x, "fc1_latent_proj", c.size("moe_latent_size"), bias) : x;
  routed = experts<SquaredRelu>(routed, routing, c.size("moe_intermediate_size"), {.gate = ""});
  if (latent) routed = linear(routed, "fc2_latent_proj", x.rows(), bias);
  return routed + module("shared_experts", x, [&](const Value<S>& in) {
           return nemotron_mlp(in, c.size("moe_shared_expert_intermediate_size"), bias);
         });
}

/// The whole model. `prefix` is in front of all names but that of lm_head, whose weight is its own
/// whatever tie_word_embeddings says.
template <class S>
Network<S> nemotron_h(const Config& c, const ModelOptions& options = {},
                      const std::string& prefix = "backbone") {
  c.expect("mlp_hidden_act", {"relu2"});
  c.expect("mamba_hidden_act", {"silu", "swish"});
  const Mamba2Options mamba = nemotron_mixer(c);
  GroupedAttention attention = grouped_attention_options(c, options);
  attention.bias = false;  // published code reads neither attention_bias nor sliding_window
  const NormOptions norm{.epsilon = c.number("layer_norm_epsilon")};
  const std::vector<std::string> kinds = nemotron_layer_kinds(c);
  const auto mixer = [&](const Value<S>& y, const std::string& kind) {
    if (kind == "linear_attention") return mamba2(y, "", mamba);
    if (kind == "full_attention") return grouped_attention(y, attention);
    if (kind == "mlp") return nemotron_mlp(y, c.size("intermediate_size"), c.flag("mlp_bias"));
    if (kind != "moe") c.fail("layers_block_type", kind.substr(0, 40) + " is not supported");
    return nemotron_experts(y, c);
  };
  Builder<S> net;
  net.enter(prefix);
  Value<S> x = embedding(net, "embeddings", c.size("vocab_size"), c.size("hidden_size"));
  for (std::size_t l = 0; l < kinds.size(); ++l)
    x = module("layers." + std::to_string(l), x, [&](const Value<S>& in) {
      return in + module("mixer", rms_norm(in, "norm", norm),
                         [&](const Value<S>& y) { return mixer(y, kinds[l]); });
    });
  x = rms_norm(x, "norm_f", norm);
  return net.build(logits(x, c));
}

}  // namespace fw::models
