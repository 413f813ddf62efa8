#pragma once

#include <algorithm>
#include <fastweights/layers/feed_forward.hpp>
#include <fastweights/models/tied_head.hpp>

/// \file
/// Parts that several architectures share, under the names that most of them publish.

namespace fw::inline FASTWEIGHTS_ABI::models {

using namespace fw::networks;

/// The options of a model's builder besides its config.json.
struct ModelOptions {
  /// Tokens that a state has room for from the start: one more is a std::length_error, and no token
  /// allocates. 0: caches grow with the text, without a limit but memory.
  Index context = 0;
  /// Tokens that attention looks back, if config.json says no fewer. It forgets those before. 0:
  /// all.
  Index window = 0;
  // See model_options, which finds these in a folder.
  bool stacked_experts = false;     ///< of Qwen3.5: two tensors a layer, not three an expert
  bool low_rank_queries = false;    ///< of Bailing: as q_lora_rank says
  bool own_head = false;            ///< a tied model that has another head: see tied_head.hpp
  bool dense_as_sparse = false;     ///< of Kimi Linear: both have the names of sparse layers
  bool norms_as_linear = false;     ///< of OLMo Hybrid: all norms have the names of linear layers
  bool equal_convolutions = false;  ///< of OLMo Hybrid: rows of q, k and v in equal parts
};

namespace detail {

// True if the first convolution of q in a linear layer has other rows than q itself.
template <class File>
bool has_equal_convolutions(const File& file, const std::vector<std::string>& names) {
  const std::string of_q = ".linear_attn.q_conv1d.weight";
  for (const std::string& name : names) {
    if (!name.ends_with(of_q)) continue;
    const std::string q = name.substr(0, name.size() - 13) + "proj.weight";
    return file.contains(q) && file.shape(q).at(0) != file.shape(name).at(0);
  }
  return false;
}

}  // namespace detail

/// The options of a model that the tensors of a folder say, and its config.json does not. Compares
/// lm_head.weight with the embedding's table, unless config.json says that they are not tied.
template <class File>
ModelOptions model_options(const File& file, Index context = 0, Index window = 0) {
  const std::vector<std::string> names = file.names();
  const auto has = [&](const char* ending) {
    return std::any_of(names.begin(), names.end(),
                       [&](const std::string& name) { return name.ends_with(ending); });
  };
  return {.context = context,
          .window = window,
          .stacked_experts = has(".experts.gate_up_proj"),
          .low_rank_queries = has(".q_a_proj.weight"),
          .own_head = detail::has_own_head(file),
          .dense_as_sparse = has(".block_sparse_moe.gate_proj.weight"),
          .norms_as_linear = has(".feedforward_layer_norm.weight") &&
                             has(".post_feedforward_layernorm.weight") &&
                             !has(".post_attention_layernorm.weight"),
          .equal_convolutions = detail::has_equal_convolutions(file, names)};
}

/// True if the logits of a model use the table of its embedding.
inline bool is_tied(const Config& c, const ModelOptions& options, bool otherwise = false) {
  return c.flag("tie_word_embeddings", otherwise) && !options.own_head;
}

/// The cache of an attention layer that looks back `window` tokens, or 0 for all.
inline CacheOptions cache_of(const ModelOptions& options, Index window = 0) {
  if (options.context < 0 || options.window < 0)
    fw::detail::throw_invalid({"ModelOptions: context is ", std::to_string(options.context),
                               " and window ", std::to_string(options.window),
                               ", expected at least 0"});
  if (options.window > 0 && (window == 0 || options.window < window)) window = options.window;
  const Index limit = options.context;
  if (window > 0 && (limit == 0 || window < limit))
    return {.capacity = window, .when_full = WhenFull::slide};
  if (limit > 0) return {.capacity = limit, .when_full = WhenFull::refuse};
  return {};
}

/// The embedding of vocab_size tokens. That of pad_token_id, which may count from the end, is not
/// learned.
template <class S>
Value<S> token_embedding(Builder<S>& net, const Config& c, const std::string& name) {
  const Index tokens = c.size("vocab_size");
  const double padding = c.number("pad_token_id", double(tokens));
  if (!(std::abs(padding) <= double(tokens))) c.fail("pad_token_id", "expected a token");
  return embedding(net, name, tokens, c.size("hidden_size"),
                   Index(padding) + (padding < 0 ? tokens : 0));
}

/// The logits: by the table `tied_to`, or by a lm_head of its own, whose name has no prefix. The
/// builder is in the module of the prefix, and in no other.
template <class S>
Value<S> logits(const Value<S>& x, const Config& c, const std::string& tied_to = "") {
  if (tied_to.empty()) x.builder->leave();
  return linear(x, tied_to.empty() ? "lm_head" : tied_to, c.size("vocab_size"));
}

}  // namespace fw::models
