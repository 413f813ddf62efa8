#pragma once

#include <fastweights/models/grouped_attention.hpp>
#include <fastweights/models/layer_kinds.hpp>
#include <fastweights/models/mamba2_mixer.hpp>
#include <fastweights/models/rope.hpp>

/// \file
/// Zamba2: layers of Mamba-2's mixer, before some of which a transformer block sees the tokens and
/// their embeddings. There are few blocks, whose weights those layers share in turn; each adds
/// projections of low rank that are its own. Glorioso et al. 2024, arXiv 2411.15242, section 2.
/// With the embeddings e and the layer's projection P:
///
///     t = P feed_forward(rms(attention(rms(x | e))))     y = x + mixer(rms(x + t))
///
/// A layer without a block has t = 0.

namespace fw::inline FASTWEIGHTS_ABI::models {

/// A layer's use of a block: the `index`-th of the layers with one, out of `uses`.
struct Zamba2Use {
  Index index = 0, uses = 1;  ///< the number of this use, and of all uses
  bool shares = false;        ///< the weights of an earlier use
};

/// The mixer. Its convolution has a bias and its norm an ε of 1e-5, whatever config.json says.
inline Mamba2Options zamba2_mixer(const Config& c) {
  const Index heads = c.size("n_mamba_heads");
  const Index values = c.size("mamba_expand", 2) * c.size("hidden_size");
  if (values % heads != 0) c.fail("n_mamba_heads", "expected a divisor of the values");
  return {.heads = heads,
          .d_v = values / heads,
          .groups = c.size("mamba_ngroups", 1),
          .d_k = c.size("mamba_d_state"),
          .kernel = c.size("mamba_d_conv", 4),
          .in_bias = c.flag("add_bias_linear"),
          .out_bias = c.flag("add_bias_linear"),
          .least_step = c.number("time_step_min", 0.001)};
}

/// Throws if an entry that the source computes, and takes from a file that has it, is another one.
inline void check_zamba2_sizes(const Config& c, const std::vector<std::string>& kinds) {
  const Index d = c.size("hidden_size"), heads = c.size("num_attention_heads");
  c.expect_size("attention_hidden_size", 2 * d, "2 hidden_size");
  for (const char* name : {"attention_head_dim", "head_dim"})
    c.expect_size(name, 2 * d / heads, "2 hidden_size / num_attention_heads");
  c.expect_size("mamba_headdim", zamba2_mixer(c).d_v, "the values / n_mamba_heads");
  std::vector<Index> hybrid;
  for (std::size_t l = 0; l < kinds.size(); ++l)
    if (kinds[l] == "hybrid") hybrid.push_back(Index(l));
  if (c.has("hybrid_layer_ids") && c.sizes("hybrid_layer_ids") != hybrid)
    c.fail("hybrid_layer_ids", "expected the hybrid layers of layers_block_type");
}

/// The projection of low rank `name`.i that the i-th use of a block adds to one of its maps. A
/// block has those of all its uses, as its file has. Uses that share weights find them.
template <class S>
Value<S> zamba2_adapter(const Value<S>& x, const std::string& name, Index rows, const Config& c,
                        const Zamba2Use& use) {
  const Index rank = c.size("adapter_rank"), blocks = c.size("num_mem_blocks", 1);
  const auto draw = [](Index columns) {
    return uniform_initialiser(1 / std::sqrt(double(columns)));
  };
  const auto of = [&](Index i) { return name + '.' + std::to_string(i); };
  for (Index i = use.index % blocks; !use.shares && i < use.uses; i += blocks) {
    x.builder->weight(of(i) + ".0.weight", {rank, x.rows()}, draw(x.rows()));
    x.builder->weight(of(i) + ".1.weight", {rows, rank}, draw(rank));
  }
  return linear(linear(x, of(use.index) + ".0", rank), of(use.index) + ".1", rows);
}

/// Attention on 2d rows, to d rows. The scale is that of heads with half as many entries.
template <class S>
Value<S> zamba2_attention(const Value<S>& x, const Config& c, const ModelOptions& options,
                          const Zamba2Use& use) {
  const Index heads = c.size("num_attention_heads"), d = x.rows() / heads;
  const Index key_heads = c.size("num_key_value_heads", heads);
  if (d < 1) c.fail("num_attention_heads", "expected at most 2 · hidden_size");
  const bool adapted = c.flag("use_shared_attention_adapter");
  const auto project = [&](const std::string& name, Index n) {
    const Value<S> y = linear(x, name + "_proj", n * d);
    if (!adapted) return y;
    return y + zamba2_adapter(x, "linear_" + name + "_adapter_list", n * d, c, use);
  };
  const auto positions = [&](const Value<S>& v, Index n) {
    return c.flag("use_mem_rope")
               ? rotary_embedding(v, n, d, RopeOptions(c).theta_of_whole_heads(10000))
               : v;
  };
  CacheOptions cache = cache_of(options);
  cache.scale = 1 / std::sqrt(double(d) / 2);
  const Value<S> y = attention(positions(project("q", heads), heads),
                               positions(project("k", key_heads), key_heads),
                               project("v", key_heads), key_heads, cache);
  return linear(y, "o_proj", x.rows() / 2);
}

/// The gated feed-forward layer of a block, with the adapters of this use.
template <class S>
Value<S> zamba2_feed_forward(const Value<S>& x, const Config& c, const Zamba2Use& use) {
  const Index hidden = c.size("intermediate_size", 4 * x.rows());
  const bool bias = c.flag("add_bias_linear");
  const Value<S> both = linear(x, "gate_up_proj", 2 * hidden, bias) +
                        zamba2_adapter(x, "gate_up_proj_adapter_list", 2 * hidden, c, use);
  const auto [gate, up] = split<2>(both, {hidden, hidden});
  const Value<S> active = c.text("hidden_act", "gelu") == "gelu" ? gelu(gate) : silu(gate);
  return linear(active * up, "down_proj", x.rows(), bias);
}

/// The whole model. `prefix` is in front of all names but that of lm_head. Published code ties all
/// or nothing: without tied embeddings, every layer with a block has weights of its own.
template <class S>
Network<S> zamba2(const Config& c, const ModelOptions& options = {},
                  const std::string& prefix = "model") {
  c.expect("hidden_act", {"gelu", "silu", "swish"});
  // Versions of the published code differ in what it does to θ.
  if (c.flag("use_mem_rope")) c.expect_flag("use_long_context", false);
  const Index d = c.size("hidden_size"), blocks = c.size("num_mem_blocks", 1);
  const Mamba2Options mixer = zamba2_mixer(c);
  const NormOptions norm{.epsilon = c.number("rms_norm_eps")};
  const std::vector<std::string> kinds =
      layer_kinds(c, "layers_block_type", {"linear_attention", "hybrid"},
                  [&](Index) -> std::string { c.fail("layers_block_type", "is missing"); });
  check_zamba2_sizes(c, kinds);
  Zamba2Use use{.uses = std::count(kinds.begin(), kinds.end(), "hybrid")};
  std::vector<std::string> paths;  // of the blocks, one a use
  const bool tied = c.flag("tie_word_embeddings", true);
  Builder<S> net;
  net.enter(prefix);
  const Value<S> embedded = token_embedding(net, c, "embed_tokens");
  const auto block = [&](const Value<S>& in) {
    return module("shared_transformer", concatenate<S>({in, embedded}), [&](const Value<S>& both) {
      paths.push_back(net.path());
      use.shares = tied && use.index >= blocks;
      if (use.shares) net.share_weights(paths[std::size_t(use.index % blocks)], net.path());
      const Value<S> read =
          module("self_attn", rms_norm(both, "input_layernorm", norm),
                 [&](const Value<S>& y) { return zamba2_attention(y, c, options, use); });
      return module("feed_forward", rms_norm(read, "pre_ff_layernorm", norm),
                    [&](const Value<S>& y) { return zamba2_feed_forward(y, c, use); });
    });
  };
  const auto mixed = [&](const Value<S>& in) {
    return mamba2(rms_norm(in, "input_layernorm", norm), "mamba", mixer);
  };
  Value<S> x = embedded;
  for (std::size_t l = 0; l < kinds.size(); ++l)
    x = module("layers." + std::to_string(l), x, [&](const Value<S>& in) {
      if (kinds[l] != "hybrid") return in + mixed(in);
      const Value<S> t = linear(block(in), "linear", d);
      ++use.index;
      return in + module("mamba_decoder", in + t, mixed);
    });
  x = rms_norm(x, "final_layernorm", norm);
  return net.build(logits(x, c, is_tied(c, options, true) ? "embed_tokens" : ""));
}

}  // namespace fw::models
