#pragma once

#include <algorithm>
#include <cmath>
#include <fastweights/layers/attention/relative_band.hpp>
#include <fastweights/layers/projections/linear.hpp>
#include <stdexcept>
#include <string>

namespace fw {

struct RelativeAttentionOptions {
  Index d_model;
  Index heads = 1;
  Index window = 0;   ///< how many tokens a query sees, its own among them
  bool bias = false;  ///< of queries, values and output; one of keys would cancel in the softmax
};

/// Softmax attention over a window, by content and by distance: the short-term memory of
/// Transformer-XL. Per head, with d = d_model/heads and R the sinusoidal encoding of distances:
///
///     q, k, v = W_q x, W_k x, W_v x              y = W_o [o_1; …; o_H]
///     o_i = Σ_j p_ij v_j     p_i = softmax over i − window < j ≤ i of
///                                  ((q_i + u)·k_j + (q_i + w)·W_r R_{i−j}) / √d
///
/// Every query sees the last `window` tokens up to its own, wherever a sequence is split; in the
/// paper it sees its segment so far and the whole one before. The state keeps tokens before any
/// map: they are constants, but W_k and W_v have gradients through them.
///
/// Shapes: x, y d_model×T, all weights d_model×d_model, u and w d_model, heads stacked; state
/// d_model·window. Cost a token: 8 d_model² + 6 window·d_model flops and heads·window exponentials,
/// and a call 6 window·d_model² for the distances and the tokens of before. To infer a single token
/// costs 10 d_model² + 6 heads·window·d_model in all. A train pass keeps heads·(window + 31)
/// weights a token. Throws std::invalid_argument when a size does not fit.
/// Dai et al. 2019, arXiv 1901.02860, section 3.3.
template <class S> struct RelativeAttention {
  using Scalar = S;
  using Matrix = Eigen::Matrix<S, Dynamic, Dynamic>;
  using Vector = Eigen::Matrix<S, Dynamic, 1>;
  static constexpr std::string_view name = "RelativeAttention";

  Linear<S> query;
  Linear<S> key;
  Linear<S> value;
  Linear<S> position;  ///< W_r
  Linear<S> output;
  Vector content_bias;   ///< u
  Vector position_bias;  ///< w
  Index heads;
  detail::DistanceEncoding<S> distances;  ///< R
  static constexpr auto names = fw::names("query", "key", "value", "position", "output",
                                          "content_bias", "position_bias", "heads", "distances");

  /// A ring: the token at position p of the stream lies in column p mod window.
  struct State {
    Matrix recent;
    Index length = 0;  ///< tokens so far
    static constexpr auto names = fw::names("recent", "length");
  };
  using Trace = detail::RelativeTrace<S>;

  /// Parameters are zero until initialised or loaded. Throws std::invalid_argument when the heads
  /// do not share d_model evenly.
  explicit RelativeAttention(const RelativeAttentionOptions& o)
      : query(checked(o).d_model, o.d_model, o.bias),
        key(o.d_model, o.d_model, false),
        value(o.d_model, o.d_model, o.bias),
        position(o.d_model, o.d_model, false),
        output(o.d_model, o.d_model, o.bias),
        content_bias(Vector::Zero(o.d_model)),
        position_bias(Vector::Zero(o.d_model)),
        heads(o.heads),
        distances(o.d_model, o.window) {}

  Index inputs() const { return query.inputs(); }
  Index outputs() const { return output.outputs(); }
  Index window() const { return distances.columns.cols(); }
  State initial_state() const { return {Matrix::Zero(inputs(), window()), 0}; }

  /// Each map by its own; u and w start from 0.
  template <class Generator> void initialise(Generator& random) {
    for (auto* map : {&query, &key, &value, &position, &output}) map->initialise(random);
    content_bias.setZero();
    position_bias.setZero();
  }

  void forward(State& state, Input<S> x, Output<S> y, Trace& trace, Pass pass = Pass::infer) const {
    detail::check_forward(*this, x, y);
    check_state(state);
    trace.trained = 0;
    resize_buffers(trace, x.cols(), pass);
    ask(x, trace);
    if (x.cols() == 1 && pass == Pass::infer) {
      remember(state, x);
      step(state, trace);
    } else {
      project(state, x, trace);
      for_each_block(trace, pass, [&](const auto& band) { band.attend(trace); });
      remember(state, x);
    }
    Nothing none;
    output.forward(none, trace.joined, y, none);
    if (pass == Pass::train) trace.trained = x.cols();
  }

  void backward(Input<S> x, Trace& trace, Input<S> dy, Output<S> dx,
                RelativeAttention& grad) const {
    detail::check_backward(*this, x, trace.trained, dy, dx, grad);
    Nothing none;
    trace.djoined.resize(inputs(), x.cols());
    output.backward(trace.joined, none, dy, trace.djoined, grad.output);
    for (auto* buffer : {&trace.dkeys, &trace.dvalues})
      buffer->setZero(inputs(), trace.tokens.cols());
    for (auto* buffer : {&trace.dcontent, &trace.dplaced}) buffer->resize(inputs(), x.cols());
    trace.dpositions.setZero(inputs(), window());
    trace.dweights.resize(trace.weights.rows(), trace.by_distance.cols());
    for_each_block(trace, Pass::train, [&](const auto& band) { band.attend_backward(trace); });
    dx.setZero();
    ask_backward(trace, dx, grad);
    project_backward(key, trace, trace.dkeys, dx, grad.key);
    project_backward(value, trace, trace.dvalues, dx, grad.value);
    const Index reach = reach_of(trace);
    detail::add_product(grad.position.weight, trace.dpositions.rightCols(reach),
                        distances.columns.rightCols(reach).transpose(), detail::all_at_once);
  }

 private:
  static constexpr Index block = 32;  // queries at a time

  static const RelativeAttentionOptions& checked(const RelativeAttentionOptions& o) {
    detail::check_size<Dynamic>(name, "d_model", o.d_model);
    detail::check_size<Dynamic>(name, "heads", o.heads);
    detail::check_size<Dynamic>(name, "window", o.window);
    if (o.d_model % o.heads != 0)
      throw std::invalid_argument(std::string(name) + ": d_model is " + std::to_string(o.d_model) +
                                  ", expected a multiple of heads, which is " +
                                  std::to_string(o.heads));
    return o;
  }
  void check_state(const State& state) const {
    if (state.recent.rows() != inputs())
      detail::throw_mismatch(name, "state", state.recent.rows(), "rows", inputs(), "the layer");
    if (state.recent.cols() != window())
      detail::throw_mismatch(name, "state", state.recent.cols(), "columns", window(), "the layer");
  }

  Index head_size() const { return inputs() / heads; }
  S scale() const {
    using std::sqrt;
    return S(1) / sqrt(S(static_cast<double>(head_size())));
  }

  // The distances that occur between the tokens there are.
  Index reach_of(const Trace& trace) const {
    return std::min(window(), trace.tokens.cols() - trace.absent);
  }

  void resize_buffers(Trace& trace, Index steps, Pass pass) const {
    const Index longest = std::min(block, steps);
    trace.content.resize(inputs(), steps);
    trace.joined.resize(inputs(), steps);
    trace.by_distance.resize(window(), longest);
    trace.weights.resize(window() - 1 + longest, pass == Pass::train ? heads * steps : longest);
  }

  void ask(const Input<S>& x, Trace& trace) const {
    Nothing none;
    query.forward(none, x, trace.content, none);
    trace.placed = scale() * (trace.content.colwise() + position_bias);
    trace.content = scale() * (trace.content.colwise() + content_bias);
  }
  void ask_backward(Trace& trace, Output<S>& dx, RelativeAttention& grad) const {
    trace.dcontent *= scale();
    trace.dplaced *= scale();
    grad.content_bias += trace.dcontent.rowwise().sum();
    grad.position_bias += trace.dplaced.rowwise().sum();
    trace.dcontent += trace.dplaced;
    query.add_backward(trace.tokens.rightCols(dx.cols()), trace.dcontent, dx, grad.query);
  }

  void remember(State& state, const Input<S>& x) const {
    for (Index t = std::max<Index>(0, x.cols() - window()); t < x.cols(); ++t)
      state.recent.col((state.length + t) % window()) = x.col(t);
    state.length += x.cols();
  }

  // Room for all of the window even where there are fewer tokens, so that it is the same each time.
  void project(const State& state, const Input<S>& x, Trace& trace) const {
    const Index before = window() - 1, held = std::min(state.length, before);
    for (auto* buffer : {&trace.tokens, &trace.keys, &trace.values})
      buffer->resize(inputs(), before + x.cols());
    for (Index i = 1; i <= held; ++i)
      trace.tokens.col(before - i) = state.recent.col((state.length - i) % window());
    trace.tokens.rightCols(x.cols()) = x;
    trace.absent = before - held;
    trace.positions.resize(inputs(), window());
    const Index reach = reach_of(trace), there = held + x.cols();
    Nothing none;
    key.forward(none, trace.tokens.rightCols(there), trace.keys.rightCols(there), none);
    value.forward(none, trace.tokens.rightCols(there), trace.values.rightCols(there), none);
    position.forward(none, distances.columns.rightCols(reach), trace.positions.rightCols(reach),
                     none);
  }
  void project_backward(const Linear<S>& map, const Trace& trace, const Matrix& dprojected,
                        Output<S>& dx, Linear<S>& grad) const {
    const auto dthere = dprojected.rightCols(trace.tokens.cols() - trace.absent);
    detail::add_product(grad.weight, dthere, trace.tokens.rightCols(dthere.cols()).transpose(),
                        detail::all_at_once);
    if (map.bias.size() > 0) grad.bias += dthere.rowwise().sum();
    detail::add_product(dx, map.weight.transpose(), dprojected.rightCols(dx.cols()),
                        detail::all_at_once);
  }

  // A train pass keeps the weights of all blocks, side by side.
  template <class F> void for_each_block(const Trace& trace, Pass pass, F&& f) const {
    const Index steps = trace.content.cols(), d = head_size();
    for (Index h = 0; h < heads; ++h)
      for (Index t = 0; t < steps; t += block)
        f(detail::RelativeBand{h * d, d, window(), trace.absent, t, std::min(block, steps - t),
                               pass == Pass::train ? h * steps + t : 0});
  }

  // One token asks the ring without projecting it: k·q = h·(W_kᵀ q), and Σ p v = W_v Σ p h. Matrix
  // times vector throughout, which takes no heap. In the ring the columns behind the newest token's
  // are older than those up to it.
  void step(const State& state, Trace& trace) const {
    const Index held = std::min(state.length, window()), d = head_size();
    const Index newer = 1 + (state.length - 1) % window(), older = held - newer;
    const auto tokens = state.recent.leftCols(held);
    auto scores = trace.weights.col(0).head(held);
    auto by_distance = trace.by_distance.col(0).head(held);
    auto& absorbed = trace.absorbed;
    absorbed.resize(inputs());
    for (Index row = 0; row < inputs(); row += d) {
      absorbed.noalias() =
          key.weight.middleRows(row, d).transpose() * trace.content.col(0).segment(row, d);
      scores.noalias() = tokens.transpose() * absorbed;
      absorbed.noalias() =
          position.weight.middleRows(row, d).transpose() * trace.placed.col(0).segment(row, d);
      by_distance.noalias() = distances.columns.rightCols(held).transpose() * absorbed;
      scores.head(newer) += by_distance.tail(newer);
      scores.tail(older) += by_distance.head(older);
      detail::softmax_in_place(scores);
      absorbed.noalias() = tokens * scores;
      trace.joined.col(0).segment(row, d).noalias() = value.weight.middleRows(row, d) * absorbed;
    }
    if (value.bias.size() > 0) trace.joined.col(0) += value.bias;
  }
};

}  // namespace fw
