#pragma once

#include <fastweights/any_memory/table/learners.hpp>
#include <fastweights/models/fla/parts.hpp>

/// \file
/// MesaNet: von Oswald et al. 2025, arXiv 2506.05233. For a token and a head:
///
///     q, k = l2(silu(conv(W x)))     v = W_v x     α = σ(W_a x + b_a)     β = σ(W_b x + b_b)
///     W ← α W + β v kᵀ     G ← α G + β k kᵀ     o = W (G + diag(λ))⁻¹ q
///     λ = softplus(lambda_params) + lambda_lower_bound     y = W_o (w ⊙ rms(o))
///
/// With use_output_gate, y = W_o (w ⊙ rms(o) ⊙ silu(W_g x)). The source solves by at most
/// max_cg_step steps of conjugate gradients, this by a decomposition. As there, queries and keys
/// have their convolutions whatever use_short_conv says.

namespace fw::inline FASTWEIGHTS_ABI::models::fla {

/// The layer, from its arguments in config.json.
template <class S> Network<S> mesa_net(const Config& c) {
  return layer<S>(c, [&](const Value<S>& x) {
    const Index heads = c.size("num_heads"), d = c.size("head_dim"), rows = heads * d;
    const auto unit_keys = [&](const std::string& name) {
      return l2(silu(short_convolution(project(x, name, rows), c, name)), heads);
    };
    const Value<S> q = unit_keys("q"), k = unit_keys("k"), v = project(x, "v", rows);
    const Value<S> beta = sigmoid(project(x, "b", heads, true));
    const Value<S> decay = sigmoid(project(x, "a", heads, true));
    const double bound = c.number("lambda_lower_bound", 0.25);
    if (!(bound >= 0)) c.fail("lambda_lower_bound", "expected at least 0");
    const auto draw = constant_draw(std::log(std::expm1(std::max(1 - bound, 1e-3))));  // λ = 1
    const Value<S> ridge = bound + softplus(parameter(*x.builder, "lambda_params", rows, draw));
    const Value<S> o = memory(MesaMemory<S>({d, d}), {k, v, beta, decay}, {q}, "memory", {ridge});
    return output(x, o, heads, c, c.flag("use_output_gate"));
  });
}

}  // namespace fw::models::fla
