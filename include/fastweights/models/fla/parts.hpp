#pragma once

#include <fastweights/models/parts.hpp>

/// \file
/// What the single layers of flash-linear-attention (`fla`) have in common, under its names:
/// projections, short convolutions, sizes of heads, and the norm of the output. A layer is built
/// from its arguments in config.json; arguments that are absent have the defaults of the source.

namespace fw::inline FASTWEIGHTS_ABI::models::fla {

using namespace fw::networks;

/// A size that the source computes as n times a ratio, such as expand_v.
inline Index expanded(const Config& c, const std::string& ratio, Index n, double otherwise = 1) {
  const double exact = c.number(ratio, otherwise) * double(n), whole = std::trunc(exact);
  const bool is_whole = exact - whole <= 1e-5 * exact;
  return c.computed_size(ratio, is_whole ? whole : 0, std::to_string(n));
}

/// The heads of a layer. Consecutive value heads share a key head.
struct Heads {
  /// Key heads, value heads, and the rows of a key and of a value.
  Index key_heads, heads, d_k, d_v;

  /// Rows of all keys.
  Index keys() const { return key_heads * d_k; }
  /// Rows of all values.
  Index values() const { return heads * d_v; }
};

/// Of a layer with num_heads, num_v_heads, head_dim and expand_v.
inline Heads grouped_heads(const Config& c, double expand_v) {
  const Index d = c.size("head_dim"), n = c.size("num_heads");
  const Heads h{n, c.size("num_v_heads", n), d, expanded(c, "expand_v", d, expand_v)};
  if (h.heads % n != 0) c.fail("num_v_heads", "expected a multiple of num_heads");
  return h;
}

/// W x under NAME_proj.
template <class S>
Value<S> project(const Value<S>& x, const std::string& name, Index rows, bool bias = false) {
  return linear(x, name + "_proj", rows, bias);
}

/// The convolution NAME_conv1d.
template <class S>
Value<S> short_convolution(const Value<S>& x, const Config& c, const std::string& name) {
  return convolution(x, name + "_conv1d", c.size("conv_size", 4), c.flag("conv_bias"));
}

/// W x, and its convolution if the layer has short convolutions. No activation.
template <class S>
Value<S> convolved(const Value<S>& x, const Config& c, const std::string& name, Index rows,
                   bool use_short_conv = true) {
  const Value<S> y = project(x, name, rows);
  return c.flag("use_short_conv", use_short_conv) ? short_convolution(y, c, name) : y;
}

/// silu(conv(W x)) of the gated delta rules.
template <class S>
Value<S> activated(const Value<S>& x, const Config& c, const std::string& name, Index rows) {
  return silu(convolved(x, c, name, rows));
}

/// A linear map of low rank: NAME_proj.0, then NAME_proj.1.
template <class S>
Value<S> low_rank(const Value<S>& x, const std::string& name, Index rank, Index rows,
                  bool bias = false) {
  return linear(linear(x, name + "_proj.0", rank), name + "_proj.1", rows, bias);
}

/// The write strength σ(W_b x), times 2 with allow_neg_eigval, so that a write can turn the value
/// of its key around. Grazzi et al. 2024, arXiv 2411.12537.
template <class S>
Value<S> strength(const Value<S>& x, const Config& c, Index rows, bool allow_neg_eigval = false) {
  const Value<S> b = sigmoid(project(x, "b", rows));
  return c.flag("allow_neg_eigval", allow_neg_eigval) ? 2.0 * b : b;
}

/// `rows` entries for every token that are all `value`; x has at least as many rows.
template <class S> Value<S> same_for_tokens(const Value<S>& x, Index rows, double value) {
  return affine(0, x.rows_of(0, rows), value);
}

/// Whether the norm of the output has weights.
inline bool is_affine(const Config& c) {
  return !c.is_null("elementwise_affine") && c.flag("elementwise_affine", true);
}

/// The norm of every head by itself; the heads share the weights `name`.weight, which are absent if
/// elementwise_affine is false or null.
template <class S>
Value<S> norm_by_head(const Value<S>& o, const std::string& name, Index heads, const Config& c) {
  const double epsilon = c.number("norm_eps", 1e-5);
  if (!is_affine(c)) return rms(o, heads, epsilon);
  return rms_norm(o, name, {.epsilon = epsilon, .groups = heads, .shared = true});
}

/// The norm of all heads' outputs at once.
template <class S>
Value<S> norm_over_heads(const Value<S>& o, const std::string& name, const Config& c) {
  return norm_by_head(o, name, 1, c);
}

/// The function of an output's gate.
enum class Gate {
  silu,    ///< x σ(x)
  sigmoid  ///< σ(x)
};

/// The output of a layer: W_o (w ⊙ rms(o)) with o_norm by head; if it is gated,
/// W_o (w ⊙ rms(o) ⊙ gate(W_g x)).
template <class S>
Value<S> output(const Value<S>& x, const Value<S>& o, Index heads, const Config& c, bool gated,
                Gate gate = Gate::silu) {
  Value<S> y = norm_by_head(o, "o_norm", heads, c);
  if (gated) {
    const Value<S> g = project(x, "g", o.rows());
    y = y * (gate == Gate::silu ? silu(g) : sigmoid(g));
  }
  return project(y, "o", x.rows());
}

/// Builds a layer from x to f(x), both of hidden_size rows. `mode` names one of several kernels of
/// the source, which compute the same.
template <class S, class F>
Network<S> layer(const Config& c, const F& f, const std::string& size = "hidden_size") {
  c.expect("mode", {"chunk", "fused_chunk", "fused_recurrent", "parallel", "naive"});
  Builder<S> net;
  return net.build(f(net.input(c.size(size))));
}

}  // namespace fw::models::fla
