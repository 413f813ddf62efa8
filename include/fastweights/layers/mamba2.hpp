#pragma once

#include <fastweights/any_memory/table/gated.hpp>
#include <fastweights/layers/parts.hpp>
#include <fastweights/networks/operations/clamp.hpp>
#include <fastweights/networks/operations/constants.hpp>

/// \file
/// The mixer of Mamba-2 (Dao, Gu 2024, arXiv 2405.21060, section 7) and of the hybrids that use it.
/// For a token and a head, with keys and queries that the heads of a group share:
///
///     z, s, δ = W_in x     v, k, q = silu(conv(s))     Δ = softplus(δ + dt_bias)
///     W ← exp(−exp(A_log) Δ) W + Δ v kᵀ     o = W q + D v
///     y = W_out (w ⊙ rms(o ⊙ silu(z)))
///
/// The paper's names are x for v, B for k and C for q. Each group has a norm of its own.

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// Places of a mixer's norm, with o and z of the equations.
enum class GatedNorm {
  after_gate,   ///< w ⊙ rms(o ⊙ silu(z))
  before_gate,  ///< (w ⊙ rms(o)) ⊙ silu(z)
  none          ///< o ⊙ silu(z)
};

/// Sizes and options of a mixer. Its norm is after the gate in Mamba-2.
struct Mamba2Options {
  Index heads = 1, d_v = 1;   ///< heads, and values of a head
  Index groups = 1, d_k = 1;  ///< groups of heads, and keys of a group: the state's size
  Index kernel = 4;           ///< of the convolution
  bool in_bias = false, conv_bias = true, out_bias = false;  ///< of W_in, the convolution and W_out
  GatedNorm norm = GatedNorm::after_gate;                    ///< where the norm is
  double epsilon = 1e-5;
  double least_step = 0, most_step = HUGE_VAL;  ///< limits of Δ
  double in_factor = 1;                         ///< of x
  std::vector<double> factors = {};             ///< of z, v, k, q and δ; empty: all 1
};

// y of the equations, in the module that is being built.
template <class S> Value<S> mamba2_of(const Value<S>& x, const Mamba2Options& o) {
  Builder<S>& net = *x.builder;
  if (double(o.heads) * double(o.d_v) + double(o.groups) * double(o.d_k) > 0x1p29)
    fw::detail::throw_invalid({"mamba2: heads and groups have more than 2^29 rows"});
  const Index values = o.heads * o.d_v, keys = o.groups * o.d_k;
  Value<S> projected = linear(o.in_factor == 1 ? x : o.in_factor * x, "in_proj",
                              2 * (values + keys) + o.heads, o.in_bias);
  if (!o.factors.empty()) {
    std::vector<double> by_row;
    for (std::size_t i = 0; const Index rows : {values, values, keys, keys, o.heads})
      by_row.insert(by_row.end(), std::size_t(rows), o.factors.at(i++));
    projected = projected * constants(net, std::move(by_row));
  }
  const auto [z, s, delta] = split<3>(projected, {values, values + 2 * keys, o.heads});
  const auto [v, k, q] =
      split<3>(silu(convolution(s, "conv1d", o.kernel, o.conv_bias)), {values, keys, keys});
  Value<S> step = softplus(delta + parameter(net, "dt_bias", o.heads));
  if (o.least_step > 0 || o.most_step < HUGE_VAL) step = clamp(step, o.least_step, o.most_step);
  const Value<S> rate = exp(parameter(
      net, "A_log", o.heads, [](double uniform, double) { return std::log(1 + 15 * uniform); }));
  const Value<S> read =
      memory(GatedLinearAttention<S, Dynamic, Dynamic, KeyValueDecay>({o.d_k, o.d_v}),
             {k, v * step, exp(-(step * rate))}, {q});
  const Value<S> y = read + v * parameter(net, "D", o.heads, constant_initialiser(1));
  const NormOptions norm{.epsilon = o.epsilon, .groups = o.groups};
  Value<S> gated;
  if (o.norm == GatedNorm::before_gate)
    gated = rms_norm(y, "norm", norm) * silu(z);
  else
    gated = y * silu(z);
  if (o.norm == GatedNorm::after_gate) gated = rms_norm(gated, "norm", norm);
  if (o.norm != GatedNorm::none) net.note_module(net.path("norm"), y, gated);
  return linear(gated, "out_proj", x.rows(), o.out_bias);
}

/// y of the equations, with as many rows as x. Cost: 5 d_k d_v a head and token, and the maps.
template <class S>
Value<S> mamba2(const Value<S>& in, const std::string& name, const Mamba2Options& o) {
  return module(name, in, [&](const Value<S>& x) { return mamba2_of(x, o); });
}

}  // namespace fw::networks
