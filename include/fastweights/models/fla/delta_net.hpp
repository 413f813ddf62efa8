#pragma once

#include <fastweights/any_memory/table/deltas.hpp>
#include <fastweights/models/fla/parts.hpp>

/// \file
/// DeltaNet: Yang et al. 2024, arXiv 2406.06484. For a token and a head:
///
///     q, k = l2(φ(conv(W x)))     v = silu(conv(W_v x))     β = σ(W_b x)
///     W ← W + β (v − W k) kᵀ      o = W q / √d_k            y = W_o (w ⊙ rms(o))
///
/// φ is silu, relu, elu + 1 or nothing (qk_activation); with qk_norm "sum", q and k are divided by
/// their sum instead of l2. With use_gate y = W_o (w ⊙ rms(o) ⊙ silu(W_g x)). Without use_beta β is
/// 1, with allow_neg_eigval it is doubled.

namespace fw::inline FASTWEIGHTS_ABI::models::fla {

/// 1 / x, as an operation.
struct Reciprocal {
  template <class X> static auto value(const X& x) { return x.inverse(); }
  template <class X, class Y> static auto derivative(const X&, const Y& y) { return -y.square(); }
};

/// Queries or keys.
template <class S>
Value<S> delta_net_keys(const Value<S>& x, const Config& c, const std::string& name, Index rows,
                        Index heads) {
  c.expect("qk_activation", {"silu", "relu", "elu", "identity"});
  c.expect("qk_norm", {"l2", "sum"});
  const std::string activation = c.text("qk_activation", "silu");
  Value<S> k = convolved(x, c, name, rows);
  if (activation == "silu") k = silu(k);
  if (activation == "relu") k = relu(k);
  if (activation == "elu") k = relu(k) + exp(k - relu(k));
  if (c.text("qk_norm", "l2") == "l2") return l2(k, heads);
  return k * apply<Reciprocal>(sum_heads(k, heads));
}

/// y of the equations.
template <class S> Value<S> delta_net_of(const Value<S>& x, const Config& c) {
  const Index heads = c.size("num_heads");
  const Index keys = expanded(c, "expand_k", x.rows());
  const Index values = expanded(c, "expand_v", x.rows());
  if (keys % heads != 0 || values % heads != 0)
    c.fail("num_heads", "does not divide the sizes of keys and values");
  const Value<S> q = delta_net_keys(x, c, "q", keys, heads);
  const Value<S> k = delta_net_keys(x, c, "k", keys, heads);
  const Value<S> v = activated(x, c, "v", values);
  const Value<S> beta = c.flag("use_beta", true)
                            ? strength(x, c, heads)
                            : same_for_tokens(q, heads, c.flag("allow_neg_eigval") ? 2 : 1);
  const Value<S> o = memory(DeltaRule<S>({keys / heads, values / heads}), {k, v, beta},
                            {(1 / std::sqrt(double(keys / heads))) * q});
  return output(x, o, heads, c, c.flag("use_gate"));
}

/// The layer, from its arguments in config.json.
template <class S> Network<S> delta_net(const Config& c) {
  return layer<S>(
      c, [&](const Value<S>& x) { return delta_net_of(x, c); },
      c.has("d_model") ? "d_model" : "hidden_size");
}

}  // namespace fw::models::fla
