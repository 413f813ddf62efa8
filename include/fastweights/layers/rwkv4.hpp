#pragma once

#include <fastweights/any_memory/table/channels.hpp>
#include <fastweights/layers/parts.hpp>

/// \file
/// The time mixing and channel mixing of RWKV-4: Peng et al. 2023, arXiv 2305.13048, section 3.1.
/// For a token, with the mixes z_i = x_{t−1} + (x_t − x_{t−1}) ⊙ μ_i:
///
///     time mixing:     k = W_k z_k     v = W_v z_v     r = σ(W_r z_r)     y = W_o (r ⊙ wkv(k, v))
///     channel mixing:  y = σ(W_r z_r) ⊙ W_v relu(W_k z_k)²
///
/// wkv is the memory Rwkv4 with the rates e^{time_decay} and the bonus time_first.

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// z of the equations, with μ under time_mix_NAME. `before` is x_{t−1}.
template <class S>
Value<S> rwkv4_mix(const Value<S>& x, const Value<S>& before, const std::string& name) {
  const Initialiser draw = [](double uniform, double) { return uniform; };
  return before + (x - before) * parameter(*x.builder, "time_mix_" + name, x.rows(), draw);
}

/// y of the time mixing, with as many rows as x. The memory has `channels` rows. Its weights are
/// NAME.key, value, receptance, output, time_decay, time_first and time_mix_….
template <class S>
Value<S> rwkv4_time_mix(const Value<S>& in, const std::string& name, Index channels) {
  return module(name, in, [&](const Value<S>& x) {
    Builder<S>& net = *x.builder;
    const Value<S> before = token_shift(x);
    const Value<S> k = linear(rwkv4_mix(x, before, "key"), "key", channels);
    const Value<S> v = linear(rwkv4_mix(x, before, "value"), "value", channels);
    const Value<S> r = sigmoid(linear(rwkv4_mix(x, before, "receptance"), "receptance", channels));
    const auto draw_decay = [](double uniform, double) { return 8 * uniform - 5; };
    const Value<S> rate = exp(parameter(net, "time_decay", channels, draw_decay));
    const Value<S> bonus =
        parameter(net, "time_first", channels, constant_initialiser(std::log(0.3)));
    const Rwkv4<S> part(channels / parts_of_channels(channels));
    const Value<S> wkv = memory(part, {k, v}, {k, v}, "memory", {rate, bonus});
    return linear(r * wkv, "output", x.rows());
  });
}

/// y of the channel mixing, with as many rows as x and `hidden` rows between. Its weights are
/// NAME.key, value, receptance and time_mix_….
template <class S>
Value<S> rwkv4_channel_mix(const Value<S>& in, const std::string& name, Index hidden) {
  return module(name, in, [&](const Value<S>& x) {
    const Value<S> before = token_shift(x);
    const Value<S> k = linear(rwkv4_mix(x, before, "key"), "key", hidden);
    const Value<S> r = sigmoid(linear(rwkv4_mix(x, before, "receptance"), "receptance", x.rows()));
    return r * linear(square(relu(k)), "value", x.rows());
  });
}

}  // namespace fw::networks
