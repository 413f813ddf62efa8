#pragma once

#include <fastweights/any_memory/table/state_spaces.hpp>
#include <fastweights/models/fla/grouped_queries.hpp>

/// \file
/// Gated slot attention: Zhang et al. 2024, arXiv 2409.07146. For a token and a query head with
/// num_slots slots:
///
///     q, k = φ(W x)     v = silu(W_v x)     α = σ(W_f x)^{1/n}     s = 1 − α
///     K ← diag(α) K + s kᵀ     V ← V diag(α) + v sᵀ     o = V softmax(c K q)
///     y = W_o (w ⊙ rms(silu(o)))
///
/// The norm is over all heads at once. n is gate_logit_normalizer, c is scale, where null is
/// 1/√d_k; φ is silu, relu or relu(W_φ ·) with one W_φ for all heads ("t2r"). With use_short_conv,
/// W x is silu(conv(W x)) instead. As in the source, use_norm and use_output_gate change nothing.

namespace fw::inline FASTWEIGHTS_ABI::models::fla {

/// φ of queries or keys. The map "t2r" is learned: Kasai et al. 2021, arXiv 2103.13076, eq. 5.
template <class S> Value<S> slot_features(const Value<S>& x, const Config& c, Index heads) {
  c.expect("feature_map", {"swish", "relu", "t2r"});
  const std::string map = c.text("feature_map", "swish");
  if (map == "swish") return silu(x);
  if (map == "relu") return relu(x);
  const Index d = x.rows() / heads;
  std::vector<Value<S>> parts;
  for (Index h = 0; h < heads; ++h)
    parts.push_back(linear(x.rows_of(h * d, d), "feature_map.layer", d));
  return relu(concatenate(parts));
}

/// y of the equations.
template <class S> Value<S> gsa_of(const Value<S>& x, const Config& c) {
  const GroupedQueries h = grouped_queries(c, 4, 1, 1);
  if (is_affine(c) && h.outputs() != x.rows()) c.fail("expand_v", "the norm's weights need 1");
  const Index slots = c.size("num_slots", h.d_k);
  const Value<S> q = slot_features(maybe_activated(x, c, "q", h.queries()), c, h.heads);
  const Value<S> k = slot_features(maybe_activated(x, c, "k", h.keys()), c, h.kv_heads);
  const Value<S> v = silu(maybe_activated(x, c, "v", h.values()));
  const Value<S> decay = exp(log_gate(project(x, "f", h.kv_heads * slots), c, 8));
  const double scale = c.is_null("scale") ? 1 / std::sqrt(double(h.d_k)) : c.number("scale", 1);
  const Value<S> o =
      memory(GatedSlotAttention<S>({h.d_k, h.d_v}, slots), {k, v, 1.0 - decay, decay}, {scale * q});
  return project(norm_over_heads(silu(o), "g_norm", c), "o", x.rows());
}

/// The layer, from its arguments in config.json.
template <class S> Network<S> gsa(const Config& c) {
  return layer<S>(c, [&](const Value<S>& x) { return gsa_of(x, c); });
}

}  // namespace fw::models::fla
