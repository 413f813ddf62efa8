#pragma once

#include <fastweights/layers/parts.hpp>
#include <fastweights/networks/operations/long_term_attention.hpp>

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// Ways of joined_attention to combine the short-term and the long-term output.
enum class Join {
  sum,   ///< y = short + long
  alpha  ///< y = (1 − α) short + α long, α = sigmoid of a learned scalar, initially ½
};

/// Attention to a short-term and a long-term memory: tokens that leave the short-term window are
/// written to the long-term memory, `when.chunk` at a time, and every query reads both memories.
///
///     y_t = short_t + W_out long(W_Q x_t)
///
/// The ∞-former's, with relative attention beside a continuous memory:
///
///     const auto near = relative_attention(x, "short_term", {.heads = 2, .window = 64});
///     x = x + joined_attention(x, near, fw::LongTermLayer({.heads = 2}, memory, fw::NoGate<S>()),
///                              {.window = 64, .chunk = 64});
///
/// `near` is what attends to the last `when.window` tokens, a value with as many rows as x.
/// Weights: query, long_term.key, .value, .output, .gate and .density, and mix for Join::alpha,
/// below the module. Cost per token: 4 d² flops, and those of long_term_attention. Throws
/// std::invalid_argument when a size does not fit. Martins, Marinho, Martins 2022, arXiv
/// 2109.00301, eq. 12 (sum).
template <class S, class L>
Value<S> joined_attention(const Value<S>& x, const Value<S>& near, L long_term,
                          const LongTermWindow& when, Join join = Join::sum) {
  const Value<S> queries = linear(x, "query", long_term.inputs(), true);
  const Value<S> heads = long_term_attention(x, queries, "long_term", std::move(long_term), when);
  const Value<S> far = linear(heads, "long_term.output", near.rows());
  if (join == Join::sum) return near + far;
  const Value<S> alpha = sigmoid(parameter(*x.builder, "mix", 1));
  return near + (far - near) * alpha;
}

}  // namespace fw::networks
