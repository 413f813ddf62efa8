#pragma once

#include <fastweights/any_memory/table/channels.hpp>
#include <fastweights/layers/parts.hpp>
#include <fastweights/networks/operations/both_ways.hpp>

namespace real_models {

using fw::Index;
using fw::networks::Value;

/// What SelectiveScan takes for the step sizes of typeseg, softplus(x) + 10⁻⁴: their inverse
/// softplus.
struct FlooredStep {
  template <class S> S value(const S& x) const {
    const S size = fw::Softplus().value(x) + S(1e-4);
    return size + std::log(-std::expm1(-size));
  }
  template <class S> S derivative(const S& x) const {
    const S size = fw::Softplus().value(x) + S(1e-4);
    return fw::Sigmoid().value(x) / -std::expm1(-size);
  }
  template <class A> auto values(const A& x) const {
    const auto size = fw::Softplus().values(x) + typename A::Scalar(1e-4);
    return size + (-(-size).expm1()).log();
  }
  template <class A, class B> auto derivatives(const A& x, const B&) const {
    const auto size = fw::Softplus().values(x) + typename A::Scalar(1e-4);
    return fw::Sigmoid().values(x) / -(-size).expm1();
  }
};

/// typeseg (PyPI, Apache-2.0): which of 35 kinds of text each character belongs to. An embedding of
/// ASCII and blocks of a Mamba mixer that reads both ways: the convolution sees two characters
/// ahead, and the scan runs forwards and backwards with the same weights.
template <class S>
Value<S> typeseg_scan(const Value<S>& v, const Value<S>& step, const Value<S>& k, const Value<S>& q,
                      const Value<S>& z, const std::string& way) {
  fw::networks::Builder<S>& net = *v.builder;
  const Index channels = v.rows(), d_k = k.rows();
  const Value<S> A = -exp(state_parameter(net, "A_log", channels, d_k));
  const Value<S> D = parameter(net, "D", channels, fw::networks::constant_initialiser(1));
  return fw::networks::memory(fw::SelectiveScan<S>({int(d_k), int(channels)}), {k, v, step},
                              {q, v, z}, way, {A, D, 0.0 * D});
}
template <class S> Value<S> typeseg_block(const Value<S>& x) {
  constexpr Index channels = 256, d_k = 16, rank = 16;
  const Value<S> h = layer_norm(x, "norm", {.epsilon = 1e-6, .bias = true});
  const auto [s, z] = split<2>(linear(h, "in_proj", 2 * channels, true), {channels, channels});
  const Value<S> v = silu(centred_convolution(s, "conv1d", 4, 2, true));
  const auto [delta, k, q] = split<3>(linear(v, "x_proj", rank + 2 * d_k, true), {rank, d_k, d_k});
  const Value<S> step = fw::networks::apply<FlooredStep>(linear(delta, "dt_proj", channels, true));
  const Value<S> backwards =
      typeseg_scan(reversed(v), reversed(step), reversed(k), reversed(q), reversed(z), "backwards");
  const Value<S> y = typeseg_scan(v, step, k, q, z, "forwards") + reversed(backwards);
  return x + linear(y, "out_proj", channels, true);
}
template <class S> Value<S> typeseg(fw::networks::Builder<S>& net) {
  Value<S> x = embedding(net, "embedding", 130, 256);
  for (int i = 0; i < 6; ++i)
    x = module("blocks." + std::to_string(i), x,
               [](const Value<S>& in) { return typeseg_block(in); });
  return linear(layer_norm(x, "norm", {.epsilon = 1e-6, .bias = true}), "head", 35, true);
}

}  // namespace real_models
