#pragma once

#include <fastweights/any_memory/table/gated.hpp>
#include <fastweights/models/fla/parts.hpp>
#include <fastweights/networks/operations/constants.hpp>

/// \file
/// HGRN2: Qin et al. 2024, arXiv 2404.07904. For a token and a head:
///
///     q = silu(W_q x)     α = l + (1 − l) σ(W_f x)     k = 1 − α     v = W_i x
///     W ← W diag(α) + v kᵀ     o = W q / √d_k     y = W_o (w ⊙ rms(o))
///
/// d_k is expand_ratio, and there are hidden_size / expand_ratio heads; if expand_ratio is null,
/// num_heads says how many. The norm is over all heads at once. With use_short_conv the
/// projections of x are convolved.
///
/// The lower bound l of the decay is 0 in the first layer (layer_idx 0), and elsewhere
/// `lower_bound`, one number or one for every key row, 0 if it is absent. A model may give it as a
/// value instead.

namespace fw::inline FASTWEIGHTS_ABI::models::fla {

/// The sizes of a head and their number, rounded down as in the source.
inline Heads hgrn2_heads(const Config& c) {
  const Index d = c.size("hidden_size");
  Index heads = 0, d_k = 0;
  if (c.is_null("expand_ratio")) {
    heads = c.size("num_heads");
    d_k = d / heads;
  } else {
    d_k = c.size("expand_ratio", 128);
    heads = d / d_k;
  }
  if (heads < 1 || d_k < 1 || d % heads != 0)
    c.fail(c.has("expand_ratio") ? "expand_ratio" : "num_heads",
           "does not divide hidden_size = " + std::to_string(d) + " into heads");
  return {heads, heads, d_k, d / heads};
}

/// The bound l for every key row; empty if there is none.
template <class S>
std::vector<Value<S>> hgrn2_lower_bound(const Value<S>& x, const Config& c, Index rows) {
  if (!c.has("lower_bound") || c.count("layer_idx") == 0) return {};
  std::vector<double> bound = c.is_list("lower_bound")
                                  ? c.numbers("lower_bound")
                                  : std::vector<double>(std::size_t(rows), c.number("lower_bound"));
  if (Index(bound.size()) != rows) c.fail("lower_bound", "expected one for every key row");
  for (const double each : bound)
    if (!(each >= 0 && each <= 1)) c.fail("lower_bound", "expected 0 to 1");
  return {constants(*x.builder, std::move(bound))};
}

/// y of the equations. `lower_bound` is empty or one value.
template <class S>
Value<S> hgrn2_of(const Value<S>& x, const Config& c, const std::vector<Value<S>>& lower_bound) {
  const Heads h = hgrn2_heads(c);
  const Value<S> q = silu(convolved(x, c, "q", h.keys(), false));
  Value<S> decay = sigmoid(convolved(x, c, "f", h.keys(), false));
  for (const Value<S>& bound : lower_bound) decay = decay * (1.0 - bound) + bound;
  const Value<S> v = convolved(x, c, "i", h.values(), false);
  const Value<S> o = memory(GatedLinearAttention<S>({h.d_k, h.d_v}), {1.0 - decay, v, decay},
                            {(1 / std::sqrt(double(h.d_k))) * q});
  return project(norm_over_heads(o, "g_norm", c), "o", x.rows());
}

/// The layer, from its arguments in config.json.
template <class S> Network<S> hgrn2(const Config& c) {
  return layer<S>(c, [&](const Value<S>& x) {
    return hgrn2_of(x, c, hgrn2_lower_bound(x, c, hgrn2_heads(c).keys()));
  });
}

}  // namespace fw::models::fla
