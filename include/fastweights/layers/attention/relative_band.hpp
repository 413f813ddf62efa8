#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <fastweights/math/products.hpp>
#include <fastweights/math/softmax.hpp>

/// \file
/// The parts of relative attention: the encoding of distances, and attention of a block of queries
/// to the band of tokens in its window.

namespace fw::inline FASTWEIGHTS_ABI::detail {

using Eigen::Dynamic;
using Eigen::Index;

/// The sinusoidal encoding of distances δ = 0 … window − 1: rows sin(δ·10000^(−2i/d)), i = 0, 1, …,
/// followed by the cosines. Column c encodes δ = window − 1 − c, so distances have the order of the
/// tokens.
template <class S> struct DistanceEncoding {
  Eigen::Matrix<S, Dynamic, Dynamic> columns;

  DistanceEncoding(Index d, Index window) : columns(d, window) {
    const Index sines = (d + 1) / 2;
    for (Index c = 0; c < window; ++c)
      for (Index i = 0; i < d; ++i) {
        const double power = -2.0 * static_cast<double>(i % sines) / static_cast<double>(d);
        const double angle = static_cast<double>(window - 1 - c) * std::pow(10000.0, power);
        columns(i, c) = S(i < sines ? std::sin(angle) : std::cos(angle));
      }
  }
};

/// Queries, keys and values with the heads stacked. The tokens are the window − 1 tokens before the
/// sequence and the sequence itself. The first `padding` columns hold no token.
template <class S> struct RelativeTrace {
  using Matrix = Eigen::Matrix<S, Dynamic, Dynamic>;
  Matrix keys, values;
  Index padding = 0;
  Matrix position_keys;     ///< W_r R
  Matrix content_queries;   ///< (q + u)/√d
  Matrix position_queries;  ///< (q + w)/√d
  Matrix weights;           ///< p of all blocks, side by side
  Matrix position_scores;   ///< of one block
  Matrix head_outputs;
  Matrix dkeys, dvalues, dposition_keys, dcontent_queries, dposition_queries, dweights,
      dhead_outputs;  ///< backward's buffers
};

/// A block of queries of one head, and the band of tokens in its window: query i of the sequence
/// attends to columns i to i + window − 1, without the padding.
struct RelativeBand {
  Index row, rows;  ///< of the head
  Index window;
  Index padding;
  Index query, count;   ///< the first query of the block, and the number of queries
  Index weight_column;  ///< the block's first column in the trace's weights

  /// p = softmax(content_query·k + position_query·W_r R), o = Σ p v.
  template <class S> void attend(RelativeTrace<S>& trace) const {
    auto weights = weight_part(trace);
    auto position_scores = position_score_part(trace);
    set_product(weights, token_part(trace.keys).transpose(), query_part(trace.content_queries),
                one_block);
    set_product(position_scores, distance_part(trace.position_keys).transpose(),
                query_part(trace.position_queries), one_block);
    add_positions_and_softmax(weights, position_scores);
    set_product(query_part(trace.head_outputs), token_part(trace.values), weights, one_block);
  }

  template <class S> void attend_backward(RelativeTrace<S>& trace) const {
    const auto weights = weight_part(trace);
    const auto dout = query_part(trace.dhead_outputs);
    auto dscores = trace.dweights.topLeftCorner(length(), count);
    auto dposition_scores = position_score_part(trace);
    add_product(token_part(trace.dvalues), dout, weights.transpose(), one_block);
    set_product(dscores, token_part(trace.values).transpose(), dout, one_block);
    add_positions_and_softmax_vjp(weights, dscores, dposition_scores);
    add_product(token_part(trace.dkeys), query_part(trace.content_queries), dscores.transpose(),
                one_block);
    set_product(query_part(trace.dcontent_queries), token_part(trace.keys), dscores, one_block);
    add_product(distance_part(trace.dposition_keys), query_part(trace.position_queries),
                dposition_scores.transpose(), one_block);
    set_product(query_part(trace.dposition_queries), distance_part(trace.position_keys),
                dposition_scores, one_block);
  }

 private:
  // The first visible token.
  Index first() const { return std::max(padding, query); }
  // The number of visible tokens.
  Index length() const { return query + count + window - 1 - first(); }
  // The number of distances between queries and visible tokens.
  Index distance_count() const { return std::min(window, length()); }

  // The part of a matrix that belongs to the block.
  template <class M> auto query_part(M& m) const { return m.block(row, query, rows, count); }
  template <class M> auto token_part(M& m) const { return m.block(row, first(), rows, length()); }
  template <class M> auto distance_part(M& m) const {
    return m.block(row, window - distance_count(), rows, distance_count());
  }
  template <class S> auto weight_part(RelativeTrace<S>& trace) const {
    return trace.weights.block(0, weight_column, length(), count);
  }
  template <class S> auto position_score_part(RelativeTrace<S>& trace) const {
    return trace.position_scores.topLeftCorner(distance_count(), count);
  }

  // The first token that is visible to the block's query i, counted from first(), and the number of
  // tokens visible to it.
  Index begin(Index i) const { return std::max(padding, query + i) - first(); }
  Index visible_count(Index i) const { return query + i + window - std::max(padding, query + i); }

  // Turns content scores into weights, in place. The last visible token of a query is its
  // own, at distance 0. A shift along the diagonal aligns position scores with tokens.
  template <class Scores, class PositionScores>
  void add_positions_and_softmax(Scores& scores, const PositionScores& position_scores) const {
    for (Index i = 0; i < count; ++i) {
      auto column = scores.col(i);
      auto visible = column.segment(begin(i), visible_count(i));
      visible += position_scores.col(i).tail(visible_count(i));
      softmax_in_place(visible);
      column.head(begin(i)).setZero();
      column.tail(length() - begin(i) - visible_count(i)).setZero();
    }
  }

  // Turns the gradient of the weights P into that of the scores, P ⊙ (dP − 1 colsum(P ⊙ dP)), and
  // shifts it back along the diagonal for the gradient of the position scores.
  template <class Weights, class Gradients, class PositionScores>
  void add_positions_and_softmax_vjp(const Weights& weights, Gradients& dscores,
                                     PositionScores& dposition_scores) const {
    for (Index i = 0; i < count; ++i) {
      auto dcolumn = dscores.col(i);
      softmax_vjp_in_place(weights.col(i), dcolumn);
      dposition_scores.col(i).head(distance_count() - visible_count(i)).setZero();
      dposition_scores.col(i).tail(visible_count(i)) = dcolumn.segment(begin(i), visible_count(i));
    }
  }
};

}  // namespace fw::detail
