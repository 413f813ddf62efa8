#pragma once

#include <algorithm>
#include <fastweights/models/config.hpp>
#include <functional>
#include <set>

namespace fw::inline FASTWEIGHTS_ABI::models {

/// The kind of a layer by its present name; older files have others.
inline std::string layer_kind(const std::string& name) {
  if (name == "mamba") return "linear_attention";
  if (name == "attention") return "full_attention";
  return name;
}

/// num_hidden_layers, which must not be absurd: it bounds what a hostile file can cost.
inline Index layer_count(const Config& c, const std::string& name = "num_hidden_layers") {
  const Index layers = c.size(name);
  if (layers > 100000) c.fail(name, "expected at most 100000");
  return layers;
}

/// Fails if the states of num_hidden_layers layers have more than 2^30 entries together: a memory
/// with slow weights makes a state when it is built, which a hostile file could make expensive.
inline void check_states(const Config& c, const std::string& name, double entries_of_layer) {
  if (double(layer_count(c)) * entries_of_layer > 0x1p30)
    c.fail(name, "expected states of at most 2^30 entries in all layers");
}

/// The numbers of layers that a list names; none if it is absent. Fails if it has more than
/// num_hidden_layers.
inline std::set<Index> layer_numbers(const Config& c, const std::string& name, Index layers) {
  const std::vector<Index> numbers = c.has(name) ? c.sizes(name) : std::vector<Index>();
  if (Index(numbers.size()) > layers) c.fail(name, "expected at most num_hidden_layers entries");
  return {numbers.begin(), numbers.end()};
}

/// The kind of each of num_hidden_layers layers: the list under `name`, or usual(layer) if it is
/// absent. Fails if the list has another length or a kind that is not supported.
inline std::vector<std::string> layer_kinds(const Config& c, const std::string& name,
                                            const std::vector<std::string>& supported,
                                            const std::function<std::string(Index)>& usual) {
  const Index layers = layer_count(c);
  std::vector<std::string> kinds;
  if (c.has(name)) kinds = c.texts(name);
  for (Index l = 0; !c.has(name) && l < layers; ++l) kinds.push_back(usual(l));
  if (Index(kinds.size()) != layers) c.fail(name, "expected one for each of num_hidden_layers");
  for (std::string& kind : kinds) {
    kind = layer_kind(kind);
    if (std::find(supported.begin(), supported.end(), kind) == supported.end())
      c.fail(name, kind.substr(0, 40) + " is not supported");
  }
  return kinds;
}

/// The kind of each feed-forward layer, "dense" or "sparse": the first ones are dense,
/// `usual_dense` of them unless first_k_dense_replace says how many.
inline std::vector<std::string> feed_forward_kinds(const Config& c, Index usual_dense) {
  const char* name = "first_k_dense_replace";
  const Index dense = c.has(name) ? c.count(name) : usual_dense;
  return layer_kinds(c, "mlp_layer_types", {"dense", "sparse"},
                     [&](Index l) { return l < dense ? "dense" : "sparse"; });
}

}  // namespace fw::models
