#pragma once

#include <algorithm>
#include <fastweights/io/safetensors_reader.hpp>
#include <fastweights/models/config.hpp>
#include <fastweights/networks/network.hpp>

/// \file
/// Models whose logits use the table of the embedding. A folder may still have a lm_head.weight. If
/// it equals the table, it is the same weight; if it differs, it is the model's head, whatever
/// tie_word_embeddings says; if the table is absent, it is the table. transformers does the same.

namespace fw::inline FASTWEIGHTS_ABI::models {

namespace detail {

inline constexpr const char* head_name = "lm_head.weight";

inline bool is_table(const std::string& name) {
  return name.ends_with("embed_tokens.weight") || name.ends_with("embeddings.weight");
}

// The same entries in rows of the same length.
template <class File> bool are_equal(const File& file, const std::string& a, const std::string& b) {
  if (file.shape(a) != file.shape(b)) return false;
  if (file.dtype(a) != file.dtype(b))
    return file.template values<double>(a) == file.template values<double>(b);
  const auto x = file.data(a), y = file.data(b);
  return std::equal(x.begin(), x.end(), y.begin(), y.end());
}

// True if a file has a head that is not its table, though its config.json, if there is one, may
// say so.
template <class File> bool has_own_head(const File& file) {
  if (!file.contains(head_name)) return false;
  if constexpr (requires { file.config(); })
    if (!text_config(file.config()).flag("tie_word_embeddings", true)) return false;
  const std::vector<std::string> names = file.names();
  const auto table = std::find_if(names.begin(), names.end(), is_table);
  return table != names.end() && !are_equal(file, *table, head_name);
}

// The table of a network that uses it for the logits too; null if there is none.
template <class S> const networks::Weight<S>* tied_table(const networks::Network<S>& network) {
  for (std::size_t w = 0; w < network.weights.size(); ++w) {
    if (!is_table(network.weights[w].name)) continue;
    const auto uses = [&](const auto& node) {
      return std::count(node.weights.begin(), node.weights.end(), w) > 0;
    };
    const auto& nodes = network.graph->train.nodes;
    if (std::count_if(nodes.begin(), nodes.end(), uses) > 1) return &network.weights[w];
  }
  return nullptr;
}

// The name in a file of a weight; `tied` is tied_table(network).
template <class S, class File>
std::string name_in_file(const networks::Weight<S>& weight, const networks::Weight<S>* tied,
                         const File& file) {
  const bool is_head = &weight == tied && !file.contains(weight.name) && file.contains(head_name);
  return is_head ? head_name : weight.name;
}

// True if a tensor of a file is the table under its other name.
template <class S, class File>
bool is_tied_head(const std::string& name, const networks::Weight<S>* tied, const File& file) {
  return name == head_name && tied != nullptr &&
         (!file.contains(tied->name) || are_equal(file, tied->name, head_name));
}

}  // namespace detail

}  // namespace fw::models
