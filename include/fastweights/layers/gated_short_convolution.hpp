#pragma once

#include <fastweights/layers/parts.hpp>

/// \file
/// The gated short convolution of LFM2: Liquid AI 2025, arXiv 2511.23404, section 2. For a token:
///
///     b, c, u = W_in x     y = W_out (c ⊙ conv(b ⊙ u))
///
/// without an activation: the layer forgets all but the last tokens.

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// y of the equations, with as many rows as x, d. `o.bias` is that of all three maps. The weights
/// are NAME.in_proj, NAME.conv and NAME.out_proj. Cost a token: 8 d² flops and 2 d a token of the
/// kernel.
template <class S>
Value<S> gated_short_convolution(const Value<S>& in, const std::string& name,
                                 const ShortConvolution& o = {.kernel = 3}) {
  return module(name, in, [&](const Value<S>& x) {
    const Index d = x.rows();
    const auto [b, c, u] = split<3>(linear(x, "in_proj", 3 * d, o.bias), {d, d, d});
    return linear(c * convolution(b * u, "conv", o.kernel, o.bias), "out_proj", d, o.bias);
  });
}

}  // namespace fw::networks
