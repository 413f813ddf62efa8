#pragma once

#include <fastweights/layers/attention/relative_band.hpp>
#include <fastweights/networks/operations/weights.hpp>

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// The keys and values of the last window − 1 tokens of every sequence, oldest first.
template <class S> struct RecentKeys {
  Matrix<S> keys, values;
  static constexpr auto names = fw::names("keys", "values");
};

/// Attention over a window with relative positions: see relative_attention(). The inputs are
/// queries, keys and values; the weights are W_r, u and w.
template <class S> struct AttendRelatively final : Operation<S> {
  static constexpr bool sees_position = true;
  Index rows, heads, window;  ///< of the queries; tokens that a query attends to

  struct OwnTrace final : OperationTrace {
    std::vector<fw::detail::RelativeTrace<S>> sequences;  ///< one in an infer pass
    Matrix<S> distances;                                  ///< R
    Matrix<S> position_weight;  ///< the W_r of the first sequence's position keys
  };

  AttendRelatively(Index d, Index h, Index w) : rows(d), heads(h), window(w) {}

  std::unique_ptr<StatePart> initial_state(Index sequences) const override {
    const Index tokens = sequences * (window - 1);
    return std::make_unique<StateOfPart<RecentKeys<S>>>(
        RecentKeys<S>{Matrix<S>::Zero(rows, tokens), Matrix<S>::Zero(rows, tokens)});
  }
  std::unique_ptr<StatePart> state_gradient(Index sequences) const override {
    return initial_state(sequences);
  }
  void check_state(const Forward<S>& run) const override {
    const auto& state = run.template own_state<RecentKeys<S>>();
    const Index tokens = run.sequences() * (window - 1);
    fw::detail::check_extent(run.node.path, "keys in the state", state.keys, rows, tokens);
    fw::detail::check_extent(run.node.path, "values in the state", state.values, rows, tokens);
  }
  std::unique_ptr<OperationTrace> make_trace() const override {
    return std::make_unique<OwnTrace>();
  }

  void forward(const Forward<S>& run) const override {
    auto& state = run.template own_state<RecentKeys<S>>();
    auto& trace = run.template own_trace<OwnTrace>();
    trace.sequences.resize(run.train ? static_cast<std::size_t>(run.sequences()) : 1);
    project_positions(run, trace);
    for (Index b = 0; b < run.sequences(); ++b) {
      auto& own = trace.sequences[run.train ? static_cast<std::size_t>(b) : 0];
      const Index count = run.streams.steps(b);
      if (count == 0) continue;
      own.padding = window - 1 - std::min(run.streams.position(b), window - 1);
      join(state.keys, run.in(1).columns(run.streams.first(b), count), b, own.keys);
      join(state.values, run.in(2).columns(run.streams.first(b), count), b, own.values);
      set_queries(run, b, own);
      resize(run, count, own);
      for_each_block(count, own.padding, run.train, [&](const auto& band) { band.attend(own); });
      run.out().columns(run.streams.first(b), count) = own.head_outputs;
    }
  }

  void backward(const Backward<S>& run) const override {
    auto& trace = run.template own_trace<OwnTrace>();
    auto* const asked = run.template own_state_gradient<RecentKeys<S>>();
    for (Index b = 0; b < run.sequences(); ++b) {
      auto& own = trace.sequences[static_cast<std::size_t>(b)];
      const Index from = run.streams.first(b), count = run.streams.steps(b);
      if (count == 0) continue;
      own.dhead_outputs = run.dout().columns(from, count);
      for (auto* each : {&own.dkeys, &own.dvalues}) each->setZero(rows, own.keys.cols());
      if (asked != nullptr) {
        own.dkeys.rightCols(window - 1) = recent(asked->keys, b);
        own.dvalues.rightCols(window - 1) = recent(asked->values, b);
      }
      for (auto* each : {&own.dcontent_queries, &own.dposition_queries}) each->resize(rows, count);
      own.dposition_keys.setZero(rows, window);
      own.dweights.resize(own.weights.rows(), own.position_scores.cols());
      for_each_block(count, own.padding, true,
                     [&](const auto& band) { band.attend_backward(own); });
      own.dcontent_queries *= scale();
      own.dposition_queries *= scale();
      run.dweight(1) += own.dcontent_queries.rowwise().sum();
      run.dweight(2) += own.dposition_queries.rowwise().sum();
      run.din(0).middleCols(from, count) += own.dcontent_queries + own.dposition_queries;
      run.din(1).middleCols(from, count) += own.dkeys.rightCols(count);
      run.din(2).middleCols(from, count) += own.dvalues.rightCols(count);
      fw::detail::add_product(run.dweight(), own.dposition_keys, trace.distances.transpose(),
                              fw::detail::one_block);
      if (asked == nullptr) continue;
      recent(asked->keys, b) = own.dkeys.leftCols(window - 1);
      recent(asked->values, b) = own.dvalues.leftCols(window - 1);
    }
  }

 private:
  static constexpr Index block = 32;  // queries at a time

  S scale() const {
    using std::sqrt;
    return S(1) / sqrt(S(double(rows / heads)));
  }

  // W_r R takes window·d² multiplications, and a comparison of W_r with the former one d².
  void project_positions(const Forward<S>& run, OwnTrace& trace) const {
    auto& keys = trace.sequences[0].position_keys;
    if (trace.distances.size() == 0)
      trace.distances = fw::detail::DistanceEncoding<S>(rows, window).columns;
    if (trace.position_weight.size() == 0 || trace.position_weight != run.weight()) {
      trace.position_weight = run.weight();
      keys.resize(rows, window);
      fw::detail::set_product(keys, run.weight(), trace.distances, fw::detail::one_block);
    }
    for (std::size_t b = 1; b < trace.sequences.size(); ++b)
      trace.sequences[b].position_keys = keys;
  }

  // The recent tokens of sequence b.
  auto recent(Matrix<S>& all, Index b) const {
    return all.middleCols(b * (window - 1), window - 1);
  }
  // Those, then the tokens of this pass, the last of which become recent.
  template <class X> void join(Matrix<S>& state, const X& x, Index b, Matrix<S>& all) const {
    auto own = recent(state, b);
    all.resize(rows, window - 1 + x.cols());
    all.leftCols(window - 1) = own;
    all.rightCols(x.cols()) = x;
    own = all.rightCols(window - 1);
  }
  void set_queries(const Forward<S>& run, Index b, fw::detail::RelativeTrace<S>& own) const {
    const auto q = run.in(0).columns(run.streams.first(b), run.streams.steps(b));
    own.content_queries = scale() * (q.colwise() + run.weight(1).col(0));
    own.position_queries = scale() * (q.colwise() + run.weight(2).col(0));
  }
  void resize(const Forward<S>& run, Index count, fw::detail::RelativeTrace<S>& own) const {
    const Index longest = std::min(block, count);
    own.head_outputs.resize(rows, count);
    own.position_scores.resize(window, longest);
    own.weights.resize(window - 1 + longest, run.train ? heads * count : longest);
  }

  // A train pass stores the weights of all blocks, side by side.
  template <class F> void for_each_block(Index count, Index padding, bool train, const F& f) const {
    const Index d = rows / heads;
    for (Index h = 0; h < heads; ++h)
      for (Index t = 0; t < count; t += block)
        f(fw::detail::RelativeBand{h * d, d, window, padding, t, std::min(block, count - t),
                                   train ? h * count + t : 0});
  }
};

/// Softmax attention over a window with relative positions: the short-term memory of
/// Transformer-XL. Per head, with d = D/heads and R the sinusoidal encoding of distances:
///
///     o_i = Σ_j p_ij v_j     p_i = softmax over i − window < j ≤ i of
///                                  ((q_i + u)·k_j + (q_i + w)·W_r R_{i−j}) / √d
///
/// Every query attends to the last `window` tokens, its own included, in any split of a sequence.
/// The state holds keys and values of window − 1 tokens.
/// The weights are position.weight (W_r, D×D), content_bias (u) and position_bias (w), below the
/// module. Shapes: queries, keys, values and outputs D×T, heads stacked. Cost per token: 6 window·D
/// flops and heads·window exponentials, and 2 window·D² flops after W_r has changed. Throws
/// std::invalid_argument when a size does not fit. Dai et al. 2019, arXiv 1901.02860, section 3.3.
template <class S>
Value<S> relative_attention(const Value<S>& queries, const Value<S>& keys, const Value<S>& values,
                            Index heads, Index window, const std::string& state_name = "window") {
  Builder<S>& builder = *queries.builder;
  const Index rows = queries.rows();
  const std::string path = builder.path(state_name);
  static_cast<void>(queries.rows_of_part(heads));
  constexpr Index most = Index(1) << 24;  // no size of a state overflows
  if (window < 1 || window > most)
    fw::detail::throw_invalid({path, ": the window is ", std::to_string(window),
                               " tokens, expected 1 to ", std::to_string(most)});
  for (const Value<S>& each : {keys, values})
    if (each.rows() != rows)
      fw::detail::throw_mismatch(path, "an input", each.rows(), "rows", rows, "the queries");
  const Initialiser draw = uniform_initialiser(1 / std::sqrt(double(rows)));
  std::vector<std::size_t> weights{
      builder.weight("position.weight", {rows, rows}, draw),
      builder.weight("content_bias", {rows}, constant_initialiser(0)),
      builder.weight("position_bias", {rows}, constant_initialiser(0))};
  return builder.add(AttendRelatively<S>(rows, heads, window), rows, {queries, keys, values},
                     std::move(weights), state_name);
}

}  // namespace fw::networks
