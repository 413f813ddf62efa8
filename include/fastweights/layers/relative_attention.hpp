#pragma once

#include <fastweights/networks/operations/relative_attention.hpp>

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// Options of relative_attention.
struct RelativeAttentionOptions {
  Index heads = 1;
  Index window = 0;   ///< tokens that a query attends to, its own included
  bool bias = false;  ///< of queries, values and output; a bias of keys cancels in the softmax
};

/// The short-term memory of Transformer-XL: attention over a window with relative positions.
///
///     q, k, v = W_q x, W_k x, W_v x        y = W_o attention(q, k, v)
///
/// Weights: query, key, value, output, position.weight, content_bias and position_bias. Shapes: x,
/// y d×T, all weights d×d. Cost per token: 8 d² flops, and those of the operation. Throws
/// std::invalid_argument unless heads divides d. Dai et al. 2019, arXiv 1901.02860, section 3.3.
template <class S>
Value<S> relative_attention(const Value<S>& in, const std::string& name,
                            const RelativeAttentionOptions& o) {
  return module(name, in, [&](const Value<S>& x) {
    const Index d = x.rows();
    // One after another: the order of weights, and so of their draws, is that of every compiler.
    const Value<S> q = linear(x, "query", d, o.bias), k = linear(x, "key", d),
                   v = linear(x, "value", d, o.bias);
    return linear(relative_attention(q, k, v, o.heads, o.window), "output", d, o.bias);
  });
}

}  // namespace fw::networks
