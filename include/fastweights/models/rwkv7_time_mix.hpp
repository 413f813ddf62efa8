#pragma once

#include <fastweights/layers/rwkv7.hpp>
#include <fastweights/models/parts.hpp>

/// \file
/// Options of the time mixing of RWKV-7 (layers/rwkv7.hpp) in config.json.

namespace fw::inline FASTWEIGHTS_ABI::models {

/// The heads, from head_dim or num_heads: head_dim, 64 by default, is used unless it is null.
inline Rwkv7Options rwkv7_heads(const Config& c, const std::string& value_dim, Index values) {
  const Index d = c.size("hidden_size");
  const std::string given = c.is_null("head_dim") ? "num_heads" : "head_dim";
  const Index n = given == "head_dim" ? c.size(given, 64) : c.size(given);
  if (d % n != 0) c.fail(given, "expected a divisor of hidden_size");
  Rwkv7Options o;
  o.heads = given == "head_dim" ? d / n : n;
  o.d_k = d / o.heads;
  if (values % o.heads != 0)
    c.fail(value_dim, "expected a multiple of the " + std::to_string(o.heads) + " heads");
  o.d_v = values / o.heads;
  return o;
}

/// The ranks are those of config.json, or `usual` if they are absent; if they are null, or usual is
/// empty, a multiple of 32 near factor · √hidden_size.
inline void set_rwkv7_ranks(Rwkv7Options& o, const Config& c,
                            const std::optional<Rwkv7Options>& usual = {}) {
  const double root = std::sqrt(double(c.size("hidden_size"))), of_head = double(o.d_k) / 64;
  const auto set = [&](const char* name, Index Rwkv7Options::*rank, double factor) {
    if (c.has(name))
      o.*rank = c.size(name);
    else if (usual && !c.is_null(name))
      o.*rank = (*usual).*rank;
    else
      o.*rank = std::max<Index>(32, 32 * Index(std::nearbyint(factor * root / 32)));
  };
  set("decay_low_rank_dim", &Rwkv7Options::decay_rank, 2.5 * of_head);
  set("gate_low_rank_dim", &Rwkv7Options::gate_rank, 5);
  set("a_low_rank_dim", &Rwkv7Options::a_rank, 2.5 * of_head);
  set("v_low_rank_dim", &Rwkv7Options::v_rank, 1.7 * of_head);
}

}  // namespace fw::models
