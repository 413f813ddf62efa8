#pragma once

#include <fastweights/models/parts.hpp>

/// \file
/// The common part of the single layers of flash-linear-attention (`fla`): how their arguments in
/// config.json become options of layers/. Arguments that are absent have the defaults of the
/// source.

namespace fw::inline FASTWEIGHTS_ABI::models::fla {

using namespace fw::networks;

/// A size that the source computes as n times a ratio, such as expand_v.
inline Index expanded(const Config& c, const std::string& ratio, Index n, double otherwise = 1) {
  const double exact = c.number(ratio, otherwise) * double(n), whole = std::trunc(exact);
  const bool is_whole = exact - whole <= 1e-5 * exact;
  return c.computed_size(ratio, is_whole ? whole : 0, std::to_string(n));
}

/// Heads of a layer with num_heads, num_v_heads, head_dim and expand_v.
inline Heads grouped_heads(const Config& c, double expand_v) {
  const Index d = c.size("head_dim"), n = c.size("num_heads");
  const Heads h{n, c.size("num_v_heads", n), d, expanded(c, "expand_v", d, expand_v)};
  if (h.heads % n != 0) c.fail("num_v_heads", "expected a multiple of num_heads");
  return h;
}

/// The short convolutions, if the layer has them.
inline ShortConvolution short_convolution(const Config& c, bool use_short_conv = true) {
  if (!c.flag("use_short_conv", use_short_conv)) return {.kernel = 0};
  return {.kernel = c.size("conv_size", 4), .bias = c.flag("conv_bias")};
}

/// True if the norm of the output has weights.
inline bool is_affine(const Config& c) {
  return !c.is_null("elementwise_affine") && c.flag("elementwise_affine", true);
}

/// The norm of the output.
inline OutputNorm output_norm(const Config& c) {
  return {.epsilon = c.number("norm_eps", 1e-5), .affine = is_affine(c)};
}

/// The gate of the output if the flag says so.
inline Activation gate_if(bool is_gated, Activation gate = Activation::silu) {
  return is_gated ? gate : Activation::none;
}

/// The function that the entry `name` names.
inline Activation activation_named(const Config& c, const std::string& name,
                                   const std::string& otherwise) {
  c.expect(name, {"swish", "silu", "sigmoid", "relu", "relu2", "sqrelu", "tanh", "logsigmoid"});
  const std::string function = c.text(name, otherwise);
  if (function == "sigmoid") return Activation::sigmoid;
  if (function == "relu") return Activation::relu;
  if (function == "relu2" || function == "sqrelu") return Activation::relu_squared;
  if (function == "tanh") return Activation::tanh;
  if (function == "logsigmoid") return Activation::log_sigmoid;
  return Activation::silu;
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
