#pragma once

#include <algorithm>
#include <cmath>
#include <fastweights/core/errors.hpp>
#include <fastweights/layers/attention/relative_band.hpp>
#include <fastweights/layers/projections/linear.hpp>
#include <stdexcept>
#include <string>

namespace fw::inline FASTWEIGHTS_ABI {

/// The options of a RelativeAttention.
struct RelativeAttentionOptions {
  Index d_model;
  Index heads = 1;
  Index window = 0;   ///< tokens that a query attends to, its own included
  bool bias = false;  ///< of queries, values and output; a bias of keys cancels in the softmax
};

/// Softmax attention over a window with relative positions: the short-term memory of
/// Transformer-XL. Per head, with d = d_model/heads and R the sinusoidal encoding of distances:
///
///     q, k, v = W_q x, W_k x, W_v x              y = W_o [o_1; …; o_H]
///     o_i = Σ_j p_ij v_j     p_i = softmax over i − window < j ≤ i of
///                                  ((q_i + u)·k_j + (q_i + w)·W_r R_{i−j}) / √d
///
/// Every query attends to the last `window` tokens, its own included, in any split of a sequence.
/// (In the paper a query attends to its segment so far and to the whole segment before.) The state
/// holds unprojected tokens: they are constants, but W_k and W_v have gradients through them.
///
/// Shapes: x, y d_model×T, all weights d_model×d_model, u and w d_model, heads stacked; state
/// d_model·window. Cost per token: 8 d_model² + 6 window·d_model flops and heads·window
/// exponentials; per call 6 window·d_model² flops for the distances and the stored tokens. A
/// streaming step costs 10 d_model² + 6 heads·window·d_model flops in all. A train pass stores
/// heads·(window + 31) weights per token. Throws std::invalid_argument when a size does not fit.
/// Dai et al. 2019, arXiv 1901.02860, section 3.3.
template <class S> struct RelativeAttention {
  using Scalar = S;
  using Matrix = Eigen::Matrix<S, Dynamic, Dynamic>;
  using Vector = Eigen::Matrix<S, Dynamic, 1>;
  static constexpr std::string_view name = "RelativeAttention";

  /// W_q.
  Linear<S> query;
  /// W_k.
  Linear<S> key;
  /// W_v.
  Linear<S> value;
  Linear<S> position;  ///< W_r
  /// W_o.
  Linear<S> output;
  Vector content_bias;   ///< u
  Vector position_bias;  ///< w
  Index heads;
  detail::DistanceEncoding<S> distances;  ///< R
  static constexpr auto names = fw::names("query", "key", "value", "position", "output",
                                          "content_bias", "position_bias", "heads", "distances");

  /// A ring buffer: token p of the stream is in column p mod window.
  struct State {
    Matrix recent;     ///< d_model×window
    Index length = 0;  ///< tokens so far
    static constexpr auto names = fw::names("recent", "length");
  };
  using Trace = detail::RelativeTrace<S>;

  /// Parameters are zero until initialised or loaded. Throws std::invalid_argument unless heads
  /// divides d_model.
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
  /// The number of tokens that a token attends to, itself included.
  Index window() const { return distances.columns.cols(); }
  State initial_state() const { return {Matrix::Zero(inputs(), window()), 0}; }
  void check_state(const State& state) const {
    if (state.recent.rows() != inputs())
      detail::throw_mismatch(name, "state", state.recent.rows(), "rows", inputs(), "the layer");
    if (state.recent.cols() != window())
      detail::throw_mismatch(name, "state", state.recent.cols(), "columns", window(), "the layer");
    detail::check_count(name, {"length", state.length});
  }
  /// Tokens so far.
  Index tokens(const State& state) const { return state.length; }

  /// Initialises each projection; u and w start from 0.
  template <class Generator> void initialise(Generator& random) {
    for (auto* projection : {&query, &key, &value, &position, &output})
      projection->initialise(random);
    content_bias.setZero();
    position_bias.setZero();
  }

  void forward(State& state, Input<S> x, Output<S> y, Trace& trace, Pass pass = Pass::infer) const {
    detail::check_forward(*this, x, y);
    detail::check_whole(name, pass);
    check_state(state);
    trace.trained = 0;
    resize_buffers(trace, x.cols(), pass);
    project_queries(x, trace);
    if (x.cols() == 1 && !pass.trains()) {
      store_recent(state, x);
      step(state, trace);
    } else {
      project_tokens(state, x, trace);
      for_each_block(trace, pass, [&](const auto& band) { band.attend(trace); });
      store_recent(state, x);
    }
    Nothing none;
    output.forward(none, trace.head_outputs, y, none);
    if (pass.trains()) trace.trained = x.cols();
  }

  void backward(Input<S> x, Trace& trace, Input<S> dy, Output<S> dx,
                RelativeAttention& grad) const {
    detail::check_backward(*this, x, trace.trained, dy, dx, grad);
    Nothing none;
    trace.dhead_outputs.resize(inputs(), x.cols());
    output.backward(trace.head_outputs, none, dy, trace.dhead_outputs, grad.output);
    for (auto* buffer : {&trace.dkeys, &trace.dvalues})
      buffer->setZero(inputs(), trace.tokens.cols());
    for (auto* buffer : {&trace.dcontent_queries, &trace.dposition_queries})
      buffer->resize(inputs(), x.cols());
    trace.dposition_keys.setZero(inputs(), window());
    trace.dweights.resize(trace.weights.rows(), trace.position_scores.cols());
    for_each_block(trace, Pass::train, [&](const auto& band) { band.attend_backward(trace); });
    dx.setZero();
    project_queries_backward(trace, dx, grad);
    project_tokens_backward(key, trace, trace.dkeys, dx, grad.key);
    project_tokens_backward(value, trace, trace.dvalues, dx, grad.value);
    const Index count = distance_count(trace);
    detail::add_product(grad.position.weight, trace.dposition_keys.rightCols(count),
                        distances.columns.rightCols(count).transpose(), detail::all_at_once);
  }

 private:
  static constexpr Index block = 32;  // queries at a time

  static const RelativeAttentionOptions& checked(const RelativeAttentionOptions& o) {
    detail::check_size<Dynamic>(name, "d_model", o.d_model);
    detail::check_size<Dynamic>(name, "heads", o.heads);
    detail::check_size<Dynamic>(name, "window", o.window);
    if (o.d_model % o.heads != 0)
      detail::throw_invalid({name, ": d_model is ", std::to_string(o.d_model),
                             ", expected a multiple of heads, which is ", std::to_string(o.heads)});
    return o;
  }

  Index head_size() const { return inputs() / heads; }
  S scale() const {
    using std::sqrt;
    return S(1) / sqrt(S(static_cast<double>(head_size())));
  }

  // The number of distances between the tokens of the trace.
  Index distance_count(const Trace& trace) const {
    return std::min(window(), trace.tokens.cols() - trace.padding);
  }

  void resize_buffers(Trace& trace, Index steps, Pass pass) const {
    const Index longest = std::min(block, steps);
    trace.content_queries.resize(inputs(), steps);
    trace.head_outputs.resize(inputs(), steps);
    trace.position_scores.resize(window(), longest);
    trace.weights.resize(window() - 1 + longest, pass.trains() ? heads * steps : longest);
  }

  void project_queries(const Input<S>& x, Trace& trace) const {
    Nothing none;
    query.forward(none, x, trace.content_queries, none);
    trace.position_queries = scale() * (trace.content_queries.colwise() + position_bias);
    trace.content_queries = scale() * (trace.content_queries.colwise() + content_bias);
  }
  void project_queries_backward(Trace& trace, Output<S>& dx, RelativeAttention& grad) const {
    trace.dcontent_queries *= scale();
    trace.dposition_queries *= scale();
    grad.content_bias += trace.dcontent_queries.rowwise().sum();
    grad.position_bias += trace.dposition_queries.rowwise().sum();
    trace.dcontent_queries += trace.dposition_queries;
    query.add_backward(trace.tokens.rightCols(dx.cols()), trace.dcontent_queries, dx, grad.query);
  }

  void store_recent(State& state, const Input<S>& x) const {
    for (Index t = std::max<Index>(0, x.cols() - window()); t < x.cols(); ++t)
      state.recent.col((state.length + t) % window()) = x.col(t);
    state.length += x.cols();
  }

  // The buffers hold the whole window even for fewer tokens, so that their size stays the same.
  void project_tokens(const State& state, const Input<S>& x, Trace& trace) const {
    const Index previous = window() - 1, stored = std::min(state.length, previous);
    for (auto* buffer : {&trace.tokens, &trace.keys, &trace.values})
      buffer->resize(inputs(), previous + x.cols());
    for (Index i = 1; i <= stored; ++i)
      trace.tokens.col(previous - i) = state.recent.col((state.length - i) % window());
    trace.tokens.rightCols(x.cols()) = x;
    trace.padding = previous - stored;
    trace.position_keys.resize(inputs(), window());
    const Index count = distance_count(trace), tokens = stored + x.cols();
    Nothing none;
    key.forward(none, trace.tokens.rightCols(tokens), trace.keys.rightCols(tokens), none);
    value.forward(none, trace.tokens.rightCols(tokens), trace.values.rightCols(tokens), none);
    position.forward(none, distances.columns.rightCols(count), trace.position_keys.rightCols(count),
                     none);
  }
  void project_tokens_backward(const Linear<S>& projection, const Trace& trace,
                               const Matrix& dprojected, Output<S>& dx, Linear<S>& grad) const {
    const auto dtokens = dprojected.rightCols(trace.tokens.cols() - trace.padding);
    detail::add_product(grad.weight, dtokens, trace.tokens.rightCols(dtokens.cols()).transpose(),
                        detail::all_at_once);
    if (projection.bias.size() > 0) grad.bias += dtokens.rowwise().sum();
    detail::add_product(dx, projection.weight.transpose(), dprojected.rightCols(dx.cols()),
                        detail::all_at_once);
  }

  // A train pass stores the weights of all blocks, side by side.
  template <class F> void for_each_block(const Trace& trace, Pass pass, F&& f) const {
    const Index steps = trace.content_queries.cols(), d = head_size();
    for (Index h = 0; h < heads; ++h)
      for (Index t = 0; t < steps; t += block)
        f(detail::RelativeBand{h * d, d, window(), trace.padding, t, std::min(block, steps - t),
                               pass.trains() ? h * steps + t : 0});
  }

  // A streaming step attends to the ring buffer without projecting it: with tokens x,
  // k·q = x·(W_kᵀ q) and Σ p v = W_v Σ p x. All products are matrix times vector and allocate
  // nothing. The columns behind the newest token's column hold older tokens than those before it.
  void step(const State& state, Trace& trace) const {
    const Index stored = std::min(state.length, window()), d = head_size();
    const Index newer = 1 + (state.length - 1) % window(), older = stored - newer;
    const auto tokens = state.recent.leftCols(stored);
    auto scores = trace.weights.col(0).head(stored);
    auto position_scores = trace.position_scores.col(0).head(stored);
    auto& step_buffer = trace.step_buffer;
    step_buffer.resize(inputs());
    for (Index row = 0; row < inputs(); row += d) {
      step_buffer.noalias() =
          key.weight.middleRows(row, d).transpose() * trace.content_queries.col(0).segment(row, d);
      scores.noalias() = tokens.transpose() * step_buffer;
      step_buffer.noalias() = position.weight.middleRows(row, d).transpose() *
                              trace.position_queries.col(0).segment(row, d);
      position_scores.noalias() = distances.columns.rightCols(stored).transpose() * step_buffer;
      scores.head(newer) += position_scores.tail(newer);
      scores.tail(older) += position_scores.head(older);
      detail::softmax_in_place(scores);
      step_buffer.noalias() = tokens * scores;
      trace.head_outputs.col(0).segment(row, d).noalias() =
          value.weight.middleRows(row, d) * step_buffer;
    }
    if (value.bias.size() > 0) trace.head_outputs.col(0) += value.bias;
  }
};

}  // namespace fw
