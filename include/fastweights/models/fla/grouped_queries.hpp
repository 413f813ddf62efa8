#pragma once

#include <fastweights/models/fla/parts.hpp>

/// \file
/// What the layers of gated linear attention, retention and gated slot attention have in common:
/// num_heads query heads, of which num_heads / num_kv_heads consecutive ones share keys and values.

namespace fw::inline FASTWEIGHTS_ABI::models::fla {

/// Sizes of a layer whose query heads share keys and values.
struct GroupedQueries {
  /// Query heads, key heads, and the rows of a key and of a value.
  Index heads, kv_heads, d_k, d_v;

  /// Rows of all queries.
  Index queries() const { return heads * d_k; }
  /// Rows of all keys.
  Index keys() const { return kv_heads * d_k; }
  /// Rows of all values.
  Index values() const { return kv_heads * d_v; }
  /// Rows of the outputs of all heads.
  Index outputs() const { return heads * d_v; }
};

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

/// Those of config.json, with these defaults.
inline GroupedQueries grouped_queries(const Config& c, Index usual_heads, double expand_k,
                                      double expand_v) {
  const Index heads = c.size("num_heads", usual_heads), kv_heads = c.size("num_kv_heads", heads);
  if (heads % kv_heads != 0) c.fail("num_kv_heads", "expected a divisor of num_heads");
  return {heads, kv_heads, head_size(c, "expand_k", expand_k, heads),
          head_size(c, "expand_v", expand_v, heads)};
}

/// W x, or with use_short_conv silu(conv(W x)).
template <class S>
Value<S> maybe_activated(const Value<S>& x, const Config& c, const std::string& name, Index rows) {
  return c.flag("use_short_conv") ? activated(x, c, name, rows) : project(x, name, rows);
}

/// The function of x that the entry `name` names.
template <class S>
Value<S> activation(const Value<S>& x, const Config& c, const std::string& name,
                    const std::string& otherwise) {
  c.expect(name, {"swish", "silu", "sigmoid", "relu", "relu2", "sqrelu", "tanh", "logsigmoid"});
  const std::string function = c.text(name, otherwise);
  if (function == "sigmoid") return sigmoid(x);
  if (function == "relu") return relu(x);
  if (function == "relu2" || function == "sqrelu") return square(relu(x));
  if (function == "tanh") return tanh(x);
  if (function == "logsigmoid") return log_sigmoid(x);
  return silu(x);
}

/// φ of queries or keys, if there is a feature_map.
template <class S> Value<S> mapped(const Value<S>& x, const Config& c) {
  return c.has("feature_map") ? activation(x, c, "feature_map", "") : x;
}

/// The logarithm of a decay, log σ(x) / gate_logit_normalizer.
template <class S> Value<S> log_gate(const Value<S>& x, const Config& c, double usual_normaliser) {
  const double n = c.number("gate_logit_normalizer", usual_normaliser);
  if (!(n > 0)) c.fail("gate_logit_normalizer", "expected a positive number");
  return (1 / n) * log_sigmoid(x);
}

/// W_o (w ⊙ rms(o) ⊙ gate(W_g x)), or W_o (w ⊙ rms(o)) without use_output_gate. fuse_norm changes
/// the name of w alone.
template <class S>
Value<S> gated_output(const Value<S>& x, const Value<S>& o, Index heads, const Config& c) {
  const bool is_gated = c.flag("use_output_gate", true);
  const bool is_fused =
      is_gated && c.flag("fuse_norm", true) && c.text("gate_fn", "swish") == "swish";
  Value<S> y = norm_by_head(o, is_fused ? "g_norm_swish_gate" : "g_norm", heads, c);
  if (is_gated) y = y * activation(project(x, "g", o.rows()), c, "gate_fn", "swish");
  return project(y, "o", x.rows());
}

}  // namespace fw::models::fla
