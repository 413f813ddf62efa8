#pragma once

#include <fastweights/models/parts.hpp>

/// \file
/// Experts as DeepSeek-V3 routes to them: scores s = σ(W x), each by itself; the choice is made by
/// s + bias, within the groups with the largest sum of two best. DeepSeek-AI 2024,
/// arXiv 2412.19437, section 2.1.2. A bias steers the load, it has no gradient.

namespace fw::inline FASTWEIGHTS_ABI::models {

/// Options of sigmoid_routing.
struct SigmoidRouting {
  Index experts = 1;        ///< of which `choice` says how many a token chooses
  Choice choice;            ///< how many experts a token chooses, and how
  bool renormalise = true;  ///< weights with sum 1
  double factor = 1;        ///< of the weights
  std::string bias = "e_score_correction_bias";  ///< the name of the bias
};

/// The routing weights, from the maps gate.weight and gate.`bias`.
template <class S> Value<S> sigmoid_routing(const Value<S>& x, const SigmoidRouting& o) {
  const Value<S> bias = parameter(*x.builder, "gate." + o.bias, o.experts);
  Value<S> routing = top_k_experts(sigmoid(linear(x, "gate", o.experts)), o.choice, {bias});
  if (o.renormalise) routing = normalise_routing(routing, 1e-20);
  return o.factor * routing;
}

/// The choice, if the best groups have as many of the experts as a token chooses.
inline Choice checked_choice(const Config& c, const Choice& choice, Index experts) {
  if (choice.best_groups > choice.groups ||
      choice.experts > choice.best_groups * (experts / choice.groups))
    c.fail("topk_group", "groups do not have as many experts as a token chooses");
  return choice;
}

/// Routed experts, and shared ones that every token sees, as Kimi Linear and Ling have them. Both
/// also publish files with DeepSeek's names of the sizes: see known_names.hpp.
template <class S>
Value<S> routed_and_shared_experts(const Value<S>& x, const Config& c, const std::string& bias,
                                   const ExpertNames& names = {}) {
  const Choice choice{.experts = c.size("num_experts_per_token"),
                      .groups = c.size("num_expert_group"),
                      .best_groups = c.size("topk_group")};
  const Index all = c.size("num_experts");
  const SigmoidRouting routing{.experts = all,
                               .choice = checked_choice(c, choice, all),
                               .renormalise = c.flag("moe_renormalize", true),
                               .factor = c.number("routed_scaling_factor"),
                               .bias = bias};
  const Index hidden = c.size("moe_intermediate_size");
  const Index shared = hidden * c.size("num_shared_experts", 1);
  return experts(x, sigmoid_routing(x, routing), hidden, names) +
         module("shared_experts", x, [&](const Value<S>& in) { return swiglu(in, shared); });
}

}  // namespace fw::models
