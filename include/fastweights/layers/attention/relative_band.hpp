#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <fastweights/core/products.hpp>
#include <fastweights/core/softmax.hpp>

/// \file
/// The parts of relative attention: how distances are encoded, and what a block of queries does
/// with the band of tokens that it sees.

namespace fw::detail {

using Eigen::Dynamic;
using Eigen::Index;

/// Distances of 0 to window − 1 as waves of d/2 lengths: sines of δ·10000^(−2i/d), i = 0, 1, …, and
/// below them the cosines. Column c is for δ = window − 1 − c, so that distances lie in the order
/// of the tokens they lead to. No Eigen matrix itself, by which it is no parameter of its layer.
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

/// Queries and what they attend to, heads stacked. The tokens are the sequence's and window − 1
/// before it, of which the first `absent` stand for none.
template <class S> struct RelativeTrace {
  using Matrix = Eigen::Matrix<S, Dynamic, Dynamic>;
  Matrix tokens, keys, values;  ///< x of before and now, W_k x, W_v x
  Index absent = 0;
  Matrix positions;             ///< W_r R
  Matrix content, placed;       ///< (q + u)/√d and (q + w)/√d
  Matrix weights, by_distance;  ///< p of all blocks, side by side; one block's scores
  Matrix joined;                ///< what the heads answer
  Index trained = 0;            ///< tokens of the last pass if it was a train pass, else 0
  Matrix dkeys, dvalues, dpositions, dcontent, dplaced, dweights, djoined;  ///< backward's buffers
  Eigen::Matrix<S, Dynamic, 1> absorbed;                                    ///< a single token's
};

/// A block of queries of one head, and the band of tokens it sees: query i of the sequence those
/// of columns i to i + window − 1, but for the absent ones.
struct RelativeBand {
  Index row, rows;  ///< of the head
  Index window;
  Index absent;
  Index query, count;  ///< the first query of the block, and how many it has
  Index kept;          ///< the first column of its weights

  /// p = softmax(content·k + placed·W_r R), o = Σ p v.
  template <class S> void attend(RelativeTrace<S>& trace) const {
    auto weights = weights_of(trace);
    auto by_distance = distant(trace);
    set_product(weights, tokens(trace.keys).transpose(), queries(trace.content), all_at_once);
    set_product(by_distance, distances(trace.positions).transpose(), queries(trace.placed),
                all_at_once);
    weigh(weights, by_distance);
    set_product(queries(trace.joined), tokens(trace.values), weights, all_at_once);
  }

  template <class S> void attend_backward(RelativeTrace<S>& trace) const {
    const auto weights = weights_of(trace);
    const auto dout = queries(trace.djoined);
    auto dscores = trace.dweights.topLeftCorner(length(), count);
    auto dby_distance = distant(trace);
    add_product(tokens(trace.dvalues), dout, weights.transpose(), all_at_once);
    set_product(dscores, tokens(trace.values).transpose(), dout, all_at_once);
    weigh_vjp(weights, dscores, dby_distance);
    add_product(tokens(trace.dkeys), queries(trace.content), dscores.transpose(), all_at_once);
    set_product(queries(trace.dcontent), tokens(trace.keys), dscores, all_at_once);
    add_product(distances(trace.dpositions), queries(trace.placed), dby_distance.transpose(),
                all_at_once);
    set_product(queries(trace.dplaced), distances(trace.positions), dby_distance, all_at_once);
  }

 private:
  Index first() const { return std::max(absent, query); }  // the first token that is seen
  Index length() const { return query + count + window - 1 - first(); }
  Index reach() const { return std::min(window, length()); }  // the distances that occur

  // What of a matrix belongs to the block.
  template <class M> auto queries(M& m) const { return m.block(row, query, rows, count); }
  template <class M> auto tokens(M& m) const { return m.block(row, first(), rows, length()); }
  template <class M> auto distances(M& m) const {
    return m.block(row, window - reach(), rows, reach());
  }
  template <class S> auto weights_of(RelativeTrace<S>& trace) const {
    return trace.weights.block(0, kept, length(), count);
  }
  template <class S> auto distant(RelativeTrace<S>& trace) const {
    return trace.by_distance.topLeftCorner(reach(), count);
  }

  // Of the block's query i: where the tokens begin that it sees, counted from first(), and how many
  // they are.
  Index begin(Index i) const { return std::max(absent, query + i) - first(); }
  Index seen(Index i) const { return query + i + window - std::max(absent, query + i); }

  // From the scores of tokens and of distances to weights. A query's distances end with 0 and its
  // tokens with its own: a shift along the diagonal brings the ones to the others.
  template <class Scores, class Distant>
  void weigh(Scores& scores, const Distant& by_distance) const {
    for (Index i = 0; i < count; ++i) {
      auto column = scores.col(i);
      auto visible = column.segment(begin(i), seen(i));
      visible += by_distance.col(i).tail(seen(i));
      softmax_in_place(visible);
      column.head(begin(i)).setZero();
      column.tail(length() - begin(i) - seen(i)).setZero();
    }
  }

  // From the gradient of the weights P to that of the scores, P ⊙ (dP − 1 colsum(P ⊙ dP)), and back
  // along the diagonal to that of the distances' scores.
  template <class Weights, class Gradients, class Distant>
  void weigh_vjp(const Weights& weights, Gradients& dscores, Distant& dby_distance) const {
    for (Index i = 0; i < count; ++i) {
      auto dcolumn = dscores.col(i);
      softmax_vjp_in_place(weights.col(i), dcolumn);
      dby_distance.col(i).head(reach() - seen(i)).setZero();
      dby_distance.col(i).tail(seen(i)) = dcolumn.segment(begin(i), seen(i));
    }
  }
};

}  // namespace fw::detail
