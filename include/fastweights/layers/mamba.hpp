#pragma once

#include <fastweights/any_memory/table/channels.hpp>
#include <fastweights/layers/parts.hpp>

/// \file
/// The mixer of Mamba (Gu & Dao 2023, arXiv 2312.00752, section 3.4) and of the models that use it.
/// For a token, with I channels, keys and queries that all channels share, and W of I×N:
///
///     s, z = W_in x     v = silu(conv(s))     δ, k, q = W_x v, with norms if there are any
///     Δ = softplus(W_Δ δ + b)     W ← exp(−Δ exp(A_log)) ⊙ W + (Δ ⊙ v) kᵀ
///     y = W_out ((W q + D ⊙ v) ⊙ silu(z))
///
/// The paper's names are u for v, B for k and C for q. Mamba-2 is in layers/mamba2.hpp.

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// Norms of δ, k and q in a Mamba mixer, each by itself.
enum class MambaNorms {
  none,     ///< as in Mamba
  plain,    ///< rms(x), as in Falcon-Mamba
  weighted  ///< w ⊙ rms(x), as in Jamba
};

/// Sizes and options of a Mamba mixer.
struct MambaOptions {
  Index channels = 1;     ///< I, the rows of v
  Index d_k = 16;         ///< N, the rows of k and q: the state's size
  Index rank = 1;         ///< rows of δ
  Index kernel = 4;       ///< of the convolution
  bool bias = false;      ///< of W_in and W_out
  bool conv_bias = true;  ///< of the convolution
  MambaNorms norms = MambaNorms::none;
  double epsilon = 1e-6;  ///< of the norms
  Index parts = 0;        ///< of the channels, which threads scan; 0: parts_of_channels
};

/// δ, k or q with its norm, whose weights are `name`.weight.
template <class S>
Value<S> mamba_norm(const Value<S>& x, const std::string& name, const MambaOptions& o) {
  if (o.norms == MambaNorms::none) return x;
  if (o.norms == MambaNorms::plain) return rms(x, 1, o.epsilon);
  return rms_norm(x, name, {.epsilon = o.epsilon});
}

/// (W q + D ⊙ v) ⊙ silu(z). `step` is W_Δ δ, without its bias.
template <class S>
Value<S> mamba_scan(const Value<S>& v, const Value<S>& step, const Value<S>& k, const Value<S>& q,
                    const Value<S>& z, const MambaOptions& o) {
  Builder<S>& net = *v.builder;
  const Index parts = o.parts > 0 ? o.parts : parts_of_channels(o.channels);
  // Δ between 0.001 and 0.1 at first, as the paper's code has it.
  const auto draw_bias = [](double uniform, double) {
    const double first = std::exp(std::log(0.001) + uniform * std::log(100.0));
    return first + std::log(-std::expm1(-first));
  };
  // Rates from 1 to N.
  const auto draw_rates = [n = double(o.d_k)](double uniform, double) {
    return std::log(1 + (n - 1) * uniform);
  };
  const Value<S> A = -exp(state_parameter(net, "A_log", o.channels, o.d_k, draw_rates, parts));
  return memory(SelectiveScan<S>({o.d_k, o.channels / parts}), {k, v, step}, {q, v, z}, "memory",
                {A, parameter(net, "D", o.channels, constant_initialiser(1)),
                 parameter(net, "dt_proj.bias", o.channels, draw_bias)});
}

/// y of the equations, with as many rows as x. Cost a token: 6 N I flops and N I exponentials, and
/// the maps. Throws std::invalid_argument for sizes that are too large, and parts that do not
/// divide the channels.
template <class S>
Value<S> mamba(const Value<S>& in, const std::string& name, const MambaOptions& o) {
  return module(name, in, [&](const Value<S>& x) {
    if (double(o.channels) + double(o.d_k) + double(o.rank) > 0x1p29)
      fw::detail::throw_invalid({x.builder->path(), ": mamba has more than 2^29 rows"});
    const auto [s, z] =
        split<2>(linear(x, "in_proj", 2 * o.channels, o.bias), {o.channels, o.channels});
    const Value<S> v = silu(convolution(s, "conv1d", o.kernel, o.conv_bias));
    const auto [delta, k, q] =
        split<3>(linear(v, "x_proj", o.rank + 2 * o.d_k), {o.rank, o.d_k, o.d_k});
    const Value<S> step = linear(mamba_norm(delta, "dt_layernorm", o), "dt_proj", o.channels);
    const Value<S> y =
        mamba_scan(v, step, mamba_norm(k, "b_layernorm", o), mamba_norm(q, "c_layernorm", o), z, o);
    return linear(y, "out_proj", x.rows(), o.bias);
  });
}

}  // namespace fw::networks
