#pragma once

#include <fastweights/any_memory/table/delta_removals.hpp>
#include <fastweights/layers/parts.hpp>
#include <optional>

/// \file
/// The time mixing of RWKV-7: Peng et al. 2025, arXiv 2503.14456, section 4. For a token and a
/// head, with d = x_{t−1} − x_t and the mixes z_i = x + d ⊙ x_i for i = r, w, k, v, a, g:
///
///     r, k, v = W z     a = σ(lora_a(z_a))     g = lora_g(z_g)     α = exp(−e^{−½} σ(lora_w(z_w)))
///     v ← v + (v_first − v) ⊙ σ(lora_v(z_v)),   but in the first layer, whose v is v_first
///     κ = k ⊙ k_k, made a unit vector     k ← k + k ⊙ (a − 1) ⊙ k_a
///     W ← W diag(α) − (W κ) (κ ⊙ a)ᵀ + v kᵀ     o = W r
///     y = W_o (g ⊙ (w ⊙ standardise(o) + b + v Σ (r ⊙ k ⊙ r_k)))
///
/// where lora(z) = W_2 f(W_1 z) + b is of low rank; f is tanh for w, σ for g, the identity for a
/// and v, and g has no b.

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// Sizes and options of a layer.
struct Rwkv7Options {
  Index heads = 1, d_k = 1, d_v = 1;  ///< heads, and the rows of a key and of a value
  Index decay_rank = 1, a_rank = 1, v_rank = 1, gate_rank = 1;  ///< of the maps for w, a, v and g
  double epsilon = 1e-5;                                        ///< of the output's norm
  bool affine = true;        ///< that norm has weights and biases
  bool smooth_unit = false;  ///< κ / √(Σ κ² + 1e-6), or κ / max(√(Σ κ²), 1e-12)

  /// Rows of all keys.
  Index keys() const { return heads * d_k; }
  /// Rows of all values.
  Index values() const { return heads * d_v; }
};

/// W_1 z
template <class S> Value<S> rwkv7_down(const Value<S>& z, const std::string& name, Index rank) {
  return linear(z, name + ".lora.0", rank);
}

/// W_2 z + b; b is drawn as `bias` says, and absent without.
template <class S>
Value<S> rwkv7_up(const Value<S>& z, const std::string& name, Index rows,
                  const Initialiser& bias = {}) {
  const Value<S> y = linear(z, name + ".lora.2", rows);
  return bias ? y + parameter(*z.builder, name + ".lora.2.bias", rows, bias) : y;
}

/// α
template <class S> Value<S> rwkv7_decay(const Value<S>& z, const Rwkv7Options& o) {
  const auto draw = [](double uniform, double) { return 6 * uniform * uniform - 5.5; };
  const Value<S> low = tanh(rwkv7_down(z, "w_lora", o.decay_rank));
  return exp(-std::exp(-0.5) * sigmoid(rwkv7_up(low, "w_lora", o.keys(), draw)));
}

/// v; `v_first` is empty for the first layer, which sets it.
template <class S>
Value<S> rwkv7_value(const Value<S>& z, const Rwkv7Options& o, std::optional<Value<S>>& v_first) {
  const Value<S> v = linear(z, "v_proj", o.values());
  if (!v_first) {
    v_first = v;
    return v;
  }
  const Value<S> low = rwkv7_down(z, "v_lora", o.v_rank);
  return v +
         (*v_first - v) * sigmoid(rwkv7_up(low, "v_lora", o.values(), constant_initialiser(0.73)));
}

/// w ⊙ standardise(o) + b for every head, and the bonus of the token itself.
template <class S>
Value<S> rwkv7_output(const Value<S>& y, const Value<S>& r, const Value<S>& k, const Value<S>& v,
                      const Rwkv7Options& o) {
  const Value<S> r_k =
      parameter_matrix(*y.builder, "r_k", o.heads, o.d_k, constant_initialiser(-0.04));
  const Value<S> bonus = v * sum_heads(r * k * r_k, o.heads);
  if (!o.affine) return standardise(y, o.heads, o.epsilon) + bonus;
  return layer_norm(y, "g_norm", {.epsilon = o.epsilon, .groups = o.heads, .bias = true}) + bonus;
}

// y of the equations, in the module that is being built.
template <class S>
Value<S> rwkv7_of(const Value<S>& x, const Rwkv7Options& o, std::optional<Value<S>>& v_first) {
  Builder<S>& net = *x.builder;
  const Value<S> d = token_shift(x) - x;
  const auto mixed = [&](const std::string& name) {
    const Initialiser draw = [](double uniform, double) { return 1 - std::pow(uniform, 0.7); };
    return x + d * parameter(net, name, x.rows(), draw);
  };
  const Value<S> r = linear(mixed("x_r"), "r_proj", o.keys());
  const Value<S> k = linear(mixed("x_k"), "k_proj", o.keys());
  const Value<S> v = rwkv7_value(mixed("x_v"), o, v_first), decay = rwkv7_decay(mixed("x_w"), o);
  const Value<S> a = sigmoid(rwkv7_up(rwkv7_down(mixed("x_a"), "a_lora", o.a_rank), "a_lora",
                                      o.keys(), constant_initialiser(-0.19)));
  const Value<S> g =
      rwkv7_up(sigmoid(rwkv7_down(mixed("x_g"), "g_lora", o.gate_rank)), "g_lora", o.values());
  const Value<S> removed = k * parameter(net, "k_k", k.rows(), constant_initialiser(0.71));
  const Value<S> kappa = o.smooth_unit ? l2(removed, o.heads) : unit(removed, o.heads);
  const Value<S> key =
      k + k * (-1.0 + a) * parameter(net, "k_a", k.rows(), constant_initialiser(1.02));
  const Value<S> y =
      memory(LowRankRule<S>({o.d_k, o.d_v}), {key, v, -kappa, kappa * a, decay}, {r});
  return linear(g * rwkv7_output(y, r, key, v, o), "o_proj", x.rows());
}

/// y of the equations, with as many rows as x. `v_first` is empty for the first layer, which sets
/// it. Cost: 9 d_k d_v a head and token, and the maps.
template <class S>
Value<S> rwkv7(const Value<S>& in, const std::string& name, const Rwkv7Options& o,
               std::optional<Value<S>>& v_first) {
  return module(name, in, [&](const Value<S>& x) { return rwkv7_of(x, o, v_first); });
}

}  // namespace fw::networks
