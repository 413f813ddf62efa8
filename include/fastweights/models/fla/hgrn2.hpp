#pragma once

#include <fastweights/layers/hgrn2.hpp>
#include <fastweights/models/fla/parts.hpp>

/// \file
/// HGRN2 (layers/hgrn2.hpp) from its arguments in config.json. d_k is expand_ratio, and there are
/// hidden_size / expand_ratio heads; if expand_ratio is null, num_heads says how many. The lower
/// bound of the decay is 0 in the first layer (layer_idx 0), and elsewhere `lower_bound`, one
/// number or one for every key row, 0 if it is absent.

namespace fw::inline FASTWEIGHTS_ABI::models::fla {

/// Its options, with sizes rounded down as in the source.
inline Hgrn2Options hgrn2_options(const Config& c) {
  const Index d = c.size("hidden_size");
  Index heads = 0, d_k = 0;
  if (c.is_null("expand_ratio")) {
    heads = c.size("num_heads");
    d_k = d / heads;
  } else {
    d_k = c.size("expand_ratio", 128);
    heads = d / d_k;
  }
  if (heads < 1 || d_k < 1 || d % heads != 0)
    c.fail(c.has("expand_ratio") ? "expand_ratio" : "num_heads",
           "does not divide hidden_size = " + std::to_string(d) + " into heads");
  return {.heads = heads,
          .d_k = d_k,
          .d_v = d / heads,
          .convolution = short_convolution(c, false),
          .norm = output_norm(c)};
}

/// The bound for every key row, if there is one.
template <class S>
std::optional<Value<S>> hgrn2_lower_bound(Builder<S>& net, const Config& c, Index rows) {
  if (!c.has("lower_bound") || c.count("layer_idx") == 0) return {};
  std::vector<double> bound = c.is_list("lower_bound")
                                  ? c.numbers("lower_bound")
                                  : std::vector<double>(std::size_t(rows), c.number("lower_bound"));
  if (Index(bound.size()) != rows) c.fail("lower_bound", "expected one for every key row");
  for (const double each : bound)
    if (!(each >= 0 && each <= 1)) c.fail("lower_bound", "expected 0 to 1");
  return constants(net, std::move(bound));
}

/// The layer, from its arguments in config.json.
template <class S> Network<S> hgrn2(const Config& c) {
  const Hgrn2Options o = hgrn2_options(c);
  return layer<S>(c, [&](const Value<S>& x) {
    return networks::hgrn2(x, "", o, hgrn2_lower_bound(*x.builder, c, o.heads * o.d_k));
  });
}

}  // namespace fw::models::fla
