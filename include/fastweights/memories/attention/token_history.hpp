#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <fastweights/core/scratch.hpp>
#include <fastweights/core/signatures.hpp>
#include <fastweights/core/state.hpp>
#include <fastweights/math/softmax.hpp>

/// \file
/// A ring buffer of the last tokens, and softmax attention to them, token by token: what
/// ForgettingAttention, PathAttention, DeltaFormer and Parallax share. StickBreakingAttention has
/// the buffer and the scores.

namespace fw::inline FASTWEIGHTS_ABI {

/// Options of memories that keep the last `capacity` tokens. The oldest is overwritten when there
/// are more.
struct AttentionOptions {
  Index capacity = 0;  ///< tokens it keeps
  double scale = 0;    ///< of scores; 0 for 1/√d_k
};

/// The token at position p of the stream is in column p mod capacity.
template <class C, int Dk, int Dv> struct TokenHistory {
  mat<C, Dk, Dynamic> keys;    ///< d_k×capacity
  mat<C, Dv, Dynamic> values;  ///< d_v×capacity
  count<C> length;             ///< tokens written so far
  static constexpr auto names = fw::names("keys", "values", "length");
};

namespace detail {

inline double attention_scale(const AttentionOptions& options, Index dk) {
  return options.scale == 0 ? 1 / std::sqrt(static_cast<double>(dk)) : options.scale;
}

template <class H> Index slot_of(const H& history) { return history.length % history.keys.cols(); }
template <class H> Index held(const H& history) {
  return std::min<Index>(history.length, history.keys.cols());
}

/// Calls f with the columns of the tokens held, from the oldest to the newest.
template <class H, class F> void oldest_first(const H& history, const F& f) {
  const Index n = held(history), first = n < history.length ? slot_of(history) : 0;
  for (Index i = first; i < n; ++i) f(i);
  for (Index i = 0; i < first; ++i) f(i);
}
/// The same from the newest to the oldest.
template <class H, class F> void newest_first(const H& history, const F& f) {
  const Index n = held(history), first = n < history.length ? slot_of(history) : 0;
  for (Index i = first; i-- > 0;) f(i);
  for (Index i = n; i-- > first;) f(i);
}

template <class H, class K, class V> void append(H& history, const K& key, const V& value) {
  history.keys.col(slot_of(history)) = key;
  history.values.col(slot_of(history)) = value;
  ++history.length;
}
/// Moves the gradients of the new token from the history to the token. `before` is the history
/// before the write.
template <class H, class DK, class DV>
void append_vjp(const H& before, H& dhistory, DK& dkey, DV& dvalue) {
  auto key = dhistory.keys.col(slot_of(before));
  auto value = dhistory.values.col(slot_of(before));
  dkey += key;
  dvalue += value;
  key.setZero();
  value.setZero();
}

/// scores = scale Kᵀq, of the tokens held.
template <class H, class Q, class S, class P>
void score(const H& history, const Q& query, const S& scale, P& scores) {
  scores.noalias() = history.keys.leftCols(scores.size()).transpose() * query;
  scores *= scale;
}
/// Adds to the gradients of keys and query.
template <class H, class Q, class S, class DP, class DQ>
void score_vjp(const H& history, const Q& query, const S& scale, DP& dscores, H& dhistory,
               DQ& dquery) {
  const Index n = dscores.size();
  // Not `scale * dscores`: a product in an expression would need the heap.
  dscores *= scale;
  dhistory.keys.leftCols(n).noalias() += query * dscores.transpose();
  dquery.noalias() += history.keys.leftCols(n) * dscores;
  dscores /= scale;
}

struct NoBias {
  template <class P> void operator()(P&) const {}
};
/// weights = softmax of scale Kᵀq, over the tokens held. `bias(scores)` changes the scores first.
template <class H, class Q, class S, class P, class Bias = NoBias>
void attend(const H& history, const Q& query, const S& scale, P& weights, const Bias& bias = {}) {
  score(history, query, scale, weights);
  bias(weights);
  softmax_in_place(weights);
}
/// `dweights` becomes the gradient of the scores. Adds to the gradients of keys and query.
template <class H, class Q, class S, class P, class DP, class DQ>
void attend_vjp(const H& history, const Q& query, const S& scale, const P& weights, DP& dweights,
                H& dhistory, DQ& dquery) {
  softmax_vjp_in_place(weights, dweights);
  score_vjp(history, query, scale, dweights, dhistory, dquery);
}

/// y = V weights; 0 without tokens.
template <class H, class Q, class S, class Y, class Bias = NoBias>
void look_up(const H& history, const Q& query, const S& scale, Y& y, const Bias& bias = {}) {
  const Index n = held(history);
  if (n == 0) return y.setZero(), void();
  scratch<S, Dynamic>(n, [&](auto& weights) {
    attend(history, query, scale, weights, bias);
    y.noalias() = history.values.leftCols(n) * weights;
  });
}
/// `bias_vjp` gets the gradient of the scores.
template <class H, class Q, class S, class DY, class DQ, class Bias = NoBias, class DBias = NoBias>
void look_up_vjp(const H& history, const Q& query, const S& scale, const DY& dy, H& dhistory,
                 DQ& dquery, const Bias& bias = {}, const DBias& bias_vjp = {}) {
  const Index n = held(history);
  if (n == 0) return;
  scratch<S, Dynamic, 2>(n, [&](auto& weights, auto& dweights) {
    attend(history, query, scale, weights, bias);
    dweights.noalias() = history.values.leftCols(n).transpose() * dy;
    dhistory.values.leftCols(n).noalias() += dy * weights.transpose();
    attend_vjp(history, query, scale, weights, dweights, dhistory, dquery);
    bias_vjp(dweights);
  });
}

/// Adds log α to the biases of the tokens held. That of the token that comes next is 0.
template <class H, class B, class S> void add_log_decay(const H& history, B& bias, const S& decay) {
  using std::log;
  bias.head(held(history)).array() += S(log(decay));
  bias[slot_of(history)] = S(0);
}
template <class H, class DB, class S>
void fade_vjp(const H& history, DB& dbias, const S& decay, S& ddecay) {
  dbias[slot_of(history)] = S(0);
  ddecay += dbias.head(held(history)).sum() / decay;
}

}  // namespace detail

}  // namespace fw
