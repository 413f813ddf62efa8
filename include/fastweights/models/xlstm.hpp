#pragma once

#include <fastweights/any_memory/table/gated.hpp>
#include <fastweights/models/layer_kinds.hpp>
#include <fastweights/models/parts.hpp>

/// \file
/// xLSTM-7B: blocks of an mLSTM (Beck et al. 2024, arXiv 2405.04517) and a gated feed-forward
/// layer. Beck et al. 2025, arXiv 2503.13427. For every block:
///
///     h = x + mlstm(rms(x))     y = h + W_down (silu(W_gate rms(h)) ⊙ W_up rms(h))
///
/// and for a token and a head, with cap(a) = c tanh(a / c):
///
///     q, k, v, o = W x     i = cap(W_i x + b_i)     f = cap(W_f x + b_f)
///     m ← max(log σ(f) + m, i)     C ← e^{log σ(f) + m' − m} C + e^{i − m} v kᵀ,  n ← likewise + k
///     h = C q / (max(|n·q|, e^{−m}) + ε),  q ← q / √d_k
///     y = W_out (σ(o) ⊙ (w ⊙ standardise(h)))
///
/// Logits are cap(W x), with a cap of their own.

namespace fw::inline FASTWEIGHTS_ABI::models {

/// The cap of the option `name`: c tanh(x / c), or x if it is null.
template <class S>
Value<S> capped(const Value<S>& x, const Config& c, const std::string& name, double otherwise) {
  if (c.is_null(name)) return x;
  const double cap = c.number(name, otherwise);
  if (!(cap > 0 && std::isfinite(cap))) c.fail(name, "expected a positive number");
  return soft_cap(x, cap);
}

/// The rows of all heads: d times a factor, rounded down as in the source.
inline Index xlstm_rows(const Config& c, const std::string& factor, double otherwise, Index d,
                        Index heads) {
  const double exact = std::trunc(double(d) * c.number(factor, otherwise));
  const Index rows = c.computed_size(factor, exact, "hidden_size");
  if (rows % heads != 0)
    c.fail(factor, "times hidden_size is not a multiple of num_heads = " + std::to_string(heads));
  return rows;
}

/// The rows inside a feed-forward layer: d times a factor, rounded to a multiple. As in the source,
/// a fraction does not count, so that 64.008 becomes 64.
inline Index xlstm_hidden(const Config& c, Index d) {
  const double multiple = double(c.size("ffn_round_up_to_multiple_of", 64));
  const double most = double(d) * c.number("ffn_proj_factor", 2.667) + multiple - 1;
  return c.computed_size("ffn_proj_factor", most - std::fmod(most, multiple), "hidden_size");
}

/// One map under each name, or with the weight_mode fused one under `fused` for all of them.
template <std::size_t N, class S>
std::array<Value<S>, N> xlstm_maps(const Value<S>& x, const Config& c, const std::string& fused,
                                   const std::array<const char*, N>& names,
                                   const std::array<Index, N>& rows, bool bias) {
  if (c.text("weight_mode", "single") == "fused")
    return split<N>(linear(x, fused, std::accumulate(rows.begin(), rows.end(), Index(0)), bias),
                    rows);
  std::array<Value<S>, N> maps;
  for (std::size_t i = 0; i < N; ++i) maps[i] = linear(x, names[i], rows[i], bias);
  return maps;
}

/// The mlstm of the equations.
template <class S> Value<S> mlstm_layer(const Value<S>& x, const Config& c) {
  const Index heads = c.size("num_heads", 8);
  const Index keys = xlstm_rows(c, "qk_dim_factor", 0.5, x.rows(), heads), d_k = keys / heads;
  const Index values = xlstm_rows(c, "v_dim_factor", 1, x.rows(), heads);
  const double epsilon = c.number("eps", 1e-6);
  if (!(epsilon > 0)) c.fail("eps", "expected a positive number");
  const bool bias = c.flag("use_bias");
  const auto [q, k, v, o] = xlstm_maps<4>(x, c, "qkv_opreact", {"q", "k", "v", "ogate_preact"},
                                          {keys, keys, values, values}, bias);
  const auto [i, f] =
      xlstm_maps<2>(x, c, "ifgate_preact", {"igate_preact", "fgate_preact"}, {heads, heads}, true);
  const Value<S> h =
      memory(Mlstm<S>({d_k, values / heads}, S(epsilon)),
             {k, v, capped(i, c, "gate_soft_cap", 15), capped(f, c, "gate_soft_cap", 15)},
             {(1 / std::sqrt(double(d_k))) * q});
  const NormOptions norm{.epsilon = c.number("norm_eps", 1e-6), .groups = heads, .bias = bias};
  return linear(sigmoid(o) * layer_norm(h, "multihead_norm", norm), "out_proj", x.rows(), bias);
}

/// The gated feed-forward layer of the equations.
template <class S> Value<S> xlstm_feed_forward(const Value<S>& x, const Config& c) {
  const Index hidden = xlstm_hidden(c, x.rows());
  const bool bias = c.flag("use_bias");
  const auto [gate, up] =
      xlstm_maps<2>(x, c, "proj_up_gate_z", {"proj_up_gate", "proj_up"}, {hidden, hidden}, bias);
  return linear(silu(gate) * up, "proj_down", x.rows(), bias);
}

/// The norms of a block, with a bias if the model has biases.
template <class S>
Value<S> xlstm_norm(const Value<S>& x, const Config& c, const std::string& name) {
  const Value<S> y = rms_norm(x, name, {.epsilon = c.number("norm_eps", 1e-6)});
  return c.flag("use_bias") ? y + parameter(*x.builder, name + ".bias", x.rows()) : y;
}

/// Throws for options that are not implemented. Kernels, their chunks and number types change
/// rounding alone, and add_out_norm nothing: the source always has the last norm.
inline void check_xlstm(const Config& c) {
  c.expect("mode", {"inference", "train", "train_with_padding"});
  c.expect("weight_mode", {"single", "fused"});
  if (c.has("hidden_size") && c.has("embedding_dim") &&
      c.size("embedding_dim") != c.size("hidden_size"))
    c.fail("embedding_dim", "expected hidden_size");
}

/// The whole model. `prefix` is in front of all names but that of lm_head, whose weight is its own
/// whatever tie_word_embeddings says. The embedding of pad_token_id is learned.
template <class S>
Network<S> xlstm(const Config& c, const ModelOptions& = {},
                 const std::string& prefix = "backbone") {
  check_xlstm(c);
  const Index blocks = layer_count(c, c.has("num_blocks") ? "num_blocks" : "num_hidden_layers");
  const Index d = c.size(c.has("hidden_size") ? "hidden_size" : "embedding_dim");
  Builder<S> net;
  net.enter(prefix);
  Value<S> x = embedding(net, "embeddings", c.size("vocab_size"), d);
  for (Index l = 0; l < blocks; ++l)
    x = module("blocks." + std::to_string(l), x, [&](const Value<S>& in) {
      const Value<S> h = in + module("mlstm_layer", xlstm_norm(in, c, "norm_mlstm"),
                                     [&](const Value<S>& y) { return mlstm_layer(y, c); });
      return h + module("ffn", xlstm_norm(h, c, "norm_ffn"),
                        [&](const Value<S>& y) { return xlstm_feed_forward(y, c); });
    });
  x = rms_norm(x, "out_norm", {.epsilon = c.number("norm_eps", 1e-6)});
  return net.build(capped(logits(x, c), c, "output_logit_soft_cap", 30));
}

}  // namespace fw::models
