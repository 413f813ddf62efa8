#pragma once

#include <fastweights/any_memory/table/channels.hpp>
#include <fastweights/layers/parts.hpp>

/// \file
/// The real-gated linear recurrent unit of Griffin, RG-LRU, and the recurrent block around it: De
/// et al. 2024, arXiv 2402.19427, section 2.4 and 2.3. For a token and a head of u:
///
///     i = σ(W_iᵀ u + b_i)     r = σ(W_rᵀ u + b_r)     log a = −8 r ⊙ softplus(Λ)
///     h ← a ⊙ h + √(1 − a²) ⊙ i ⊙ u,   for the first token of a sequence h = i ⊙ u
///
/// and the block: y = W_out (gelu(W_y x + b_y) ⊙ h) + b_out with u = conv(W_x x + b_x),
/// where gelu is its tanh form.

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// Sizes of a recurrent block.
struct RgLruOptions {
  Index channels = 1;  ///< rows of u and h
  Index heads = 1;     ///< equal parts of u, whose gates see nothing of the others
  Index kernel = 4;    ///< of the convolution
};

/// σ(Wᵀ u + b) for every head, with the weights NAME_weight, a matrix a head, and NAME_bias.
template <class S> Value<S> rg_lru_gate(const Value<S>& u, const std::string& name, Index heads) {
  Builder<S>& net = *u.builder;
  const Index d = u.rows_of_part(heads);
  const std::size_t weight =
      net.weight(name + "_weight", {heads, d, d}, uniform_initialiser(1 / std::sqrt(double(d))));
  const Value<S> product =
      net.add(HeadProducts<S>({.heads = heads, .count = d}, true), u.rows(), {u}, {weight});
  return sigmoid(product + parameter_matrix(net, name + "_bias", heads, d));
}

/// h of the equations. Weights: NAME.input_gate_…, NAME.recurrent_gate_… and NAME.recurrent_param.
/// Cost a token: 4 d² flops a head of d rows.
template <class S> Value<S> rg_lru(const Value<S>& in, const std::string& name, Index heads) {
  return module(name, in, [&](const Value<S>& u) {
    const Index d = u.rows_of_part(heads);
    // a^8 between 0.9 and 0.999 for r = 1 at first, as in the paper.
    const auto draw = [](double uniform, double) {
      return std::log(std::expm1(-std::log(0.9 + 0.099 * uniform) / 8));
    };
    const Value<S> rates = softplus(parameter(*u.builder, "recurrent_param", u.rows(), draw));
    const Value<S> i = rg_lru_gate(u, "input_gate", heads);
    const Value<S> log_a = -8.0 * (rg_lru_gate(u, "recurrent_gate", heads) * rates);
    const Value<S> x = start_with(1, root_of_complement(log_a)) * (i * u);
    return memory(Hgrn<S>(d), {x, exp(log_a)}, {});
  });
}

/// y of the block, with as many rows as x. Its weights are NAME.linear_x, NAME.linear_y,
/// NAME.conv_1d, NAME.rg_lru and NAME.linear_out, all with biases.
template <class S>
Value<S> rg_lru_block(const Value<S>& in, const std::string& name, const RgLruOptions& o) {
  return module(name, in, [&](const Value<S>& x) {
    const Value<S> gate = gelu_tanh(linear(x, "linear_y", o.channels, true));
    const Value<S> u =
        convolution(linear(x, "linear_x", o.channels, true), "conv_1d", o.kernel, true);
    return linear(rg_lru(u, "rg_lru", o.heads) * gate, "linear_out", x.rows(), true);
  });
}

}  // namespace fw::networks
