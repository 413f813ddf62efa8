#pragma once

#include <fastweights/any_memory/table/gated.hpp>
#include <fastweights/models/parts.hpp>
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

namespace fw::inline FASTWEIGHTS_ABI::models {

/// Where the norm of a mixer is, with o and z of the equations.
enum class GatedNorm {
  after_gate,   ///< w ⊙ rms(o ⊙ silu(z))
  before_gate,  ///< (w ⊙ rms(o)) ⊙ silu(z)
  none          ///< o ⊙ silu(z)
};

/// Sizes and options of a mixer. Its norm is after the gate in Mamba-2.
struct Mamba2Mixer {
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

/// y of the equations.
template <class S> Value<S> mamba2_mixer(const Value<S>& x, const Mamba2Mixer& o) {
  Builder<S>& net = *x.builder;
  if (double(o.heads) * double(o.d_v) + double(o.groups) * double(o.d_k) > 0x1p29)
    fw::detail::throw_invalid({"mamba2_mixer: heads and groups have more than 2^29 rows"});
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
  const Value<S> y = read + v * parameter(net, "D", o.heads, constant_draw(1));
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

/// Sets the limits of Δ, if config.json has them.
inline void set_step_limits(Mamba2Mixer& mixer, const Config& c) {
  if (!c.has("time_step_limit")) return;
  const std::vector<double> limits = c.limits("time_step_limit");
  if (limits.size() != 2 || !(0 <= limits[0] && limits[0] <= limits[1]))
    c.fail("time_step_limit", "expected two numbers of at least 0, the smaller first");
  mixer.least_step = limits[0];
  mixer.most_step = limits[1];
}

/// The mixer of Bamba, Granite and Falcon-H1, whose sizes have the same names. `values` are those
/// of all heads.
inline Mamba2Mixer hybrid_mixer(const Config& c, Index values) {
  const Index heads = c.size("mamba_n_heads");
  // "auto" is what the heads make of the values.
  const Index d_v = c.is_text("mamba_d_head", "auto") ? std::max<Index>(values / heads, 1)
                                                      : c.size("mamba_d_head", values / heads);
  if (d_v * heads != values) c.fail("mamba_n_heads", "expected heads that divide the values");
  Mamba2Mixer mixer{.heads = heads,
                    .d_v = d_v,
                    .groups = c.size("mamba_n_groups", 1),
                    .d_k = c.size("mamba_d_state"),
                    .kernel = c.size("mamba_d_conv", 4),
                    .in_bias = c.flag("mamba_proj_bias"),
                    .conv_bias = c.flag("mamba_conv_bias", true),
                    .out_bias = c.flag("mamba_proj_bias"),
                    .epsilon = c.number("rms_norm_eps")};
  set_step_limits(mixer, c);
  return mixer;
}

}  // namespace fw::models
