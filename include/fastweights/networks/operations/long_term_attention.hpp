#pragma once

#include <fastweights/layers/attention/long_term_layer.hpp>
#include <fastweights/networks/operations/weights.hpp>

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// When tokens are written to a long-term memory.
struct LongTermWindow {
  Index window = 1;  ///< tokens of the short-term memory beside it, the current one included
  Index chunk = 1;   ///< tokens that are written together
};

/// One sequence of a long-term memory.
template <class M> struct LongTermStream {
  StateOf<M> memory;  ///< the chunks that are written
  /// The last window + chunk tokens, token p in column p mod (window + chunk).
  Matrix<typename M::Scalar> recent;
  Index tokens = 0;     ///< of the sequence so far
  Index draw_seed = 0;  ///< of a memory that samples at random: see fw::seed_draws
  static constexpr auto names = fw::names("memory", "recent", "tokens", "draw_seed");
};

/// The sequences of a long-term memory.
template <class M> struct LongTermState {
  std::vector<LongTermStream<M>> streams;  ///< one for every sequence
  static constexpr auto names = fw::names("streams");

  /// That of sequence b.
  LongTermState stream(Index b, Index /*sequences*/) const { return {{streams[std::size_t(b)]}}; }
  /// Adds sequences behind its own.
  void add(const LongTermState& more) {
    streams.insert(streams.end(), more.streams.begin(), more.streams.end());
  }
  /// Takes sequence b out.
  void remove(Index b, Index /*sequences*/) { streams.erase(streams.begin() + b); }
  /// Sequence b becomes that of another state, but for its seed.
  void assign(Index b, Index /*sequences*/, const LongTermState& other) {
    LongTermStream<M>& own = streams[std::size_t(b)];
    own.memory = other.streams[std::size_t(b)].memory;
    own.recent = other.streams[std::size_t(b)].recent;
    own.tokens = other.streams[std::size_t(b)].tokens;
  }
};

/// Attention to the tokens that have left a window: see long_term_attention(). The inputs are the
/// tokens and the queries; the weights are the parameters of L, a LongTermLayer without W_out.
template <class L> struct AttendLongTerm final : Operation<typename L::Scalar> {
  static constexpr bool sees_position = true;
  using S = typename L::Scalar;
  using Memory = decltype(L::memory);
  using State = LongTermState<Memory>;
  L layer;  ///< its weights are those of the network
  LongTermWindow when;

  // Tokens first … first + count − 1 of a sequence, which read the same state of the memory. A
  // segment may start with the write of a chunk.
  struct Segment {
    Index first = 0, count = 0;
    bool writes = false;    // whether a chunk is written before its tokens
    Index chunk_first = 0;  // the chunk's first token; negative before the pass
    Matrix<S> chunk, draws;
    typename L::Trace trace;
  };
  struct Segments {
    std::vector<Segment> all;
    Index used = 0;    // of the last pass
    Index before = 0;  // tokens of the sequence before it
  };
  struct OwnTrace final : OperationTrace {
    explicit OwnTrace(const L& l) : layer(l), gradient(l) {
      for_each_parameter([&](const std::string&,
                             auto& w) { parameters.emplace_back(w.data(), w.rows(), w.cols()); },
                         layer);
    }
    L layer, gradient;  // with the network's weights, and their gradients
    std::vector<Eigen::Map<Matrix<S>>> parameters;  // of `layer`, without a walk that makes names
    std::vector<Segments> sequences;
    double divergence = 0;  // Σ over queries, of the last train pass
    Index queries = 0;
    Matrix<S> dqueries, dchunk;
    std::vector<typename L::State> dstate;

    double penalty() const override {
      return queries > 0 ? layer.kl.weight * divergence / double(queries) : 0;
    }
  };

  AttendLongTerm(L l, const LongTermWindow& w) : layer(std::move(l)), when(w) {}

  std::unique_ptr<StatePart> initial_state(Index sequences) const override {
    const LongTermStream<Memory> one{layer.initial_state(),
                                     Matrix<S>::Zero(layer.inputs(), sequences > 0 ? room() : 0)};
    return std::make_unique<StateOfPart<State>>(
        State{std::vector<LongTermStream<Memory>>(std::size_t(sequences), one)});
  }
  // The penalty is a mean over all queries, which a part does not know.
  std::unique_ptr<StatePart> state_gradient(Index sequences) const override {
    if (layer.kl.weight != 0) return nullptr;
    const LongTermStream<Memory> one{zero_gradient(layer.memory),
                                     Matrix<S>::Zero(layer.inputs(), sequences > 0 ? room() : 0)};
    return std::make_unique<StateOfPart<State>>(
        State{std::vector<LongTermStream<Memory>>(std::size_t(sequences), one)});
  }
  void check_state(const Forward<S>& run) const override {
    const auto& state = run.template own_state<State>();
    const std::string& path = run.node.path;
    if (Index(state.streams.size()) != run.sequences())
      fw::detail::throw_mismatch(path, "the state", Index(state.streams.size()), "sequences",
                                 run.sequences(), "the network's state");
    for (Index b = 0; b < run.sequences(); ++b) {
      const auto& own = state.streams[std::size_t(b)];
      layer.check_state(own.memory);
      fw::detail::check_extent(path, "recent in the state", own.recent, layer.inputs(), room());
      fw::detail::check_count(path, {"tokens", own.tokens});
      fw::detail::check_count(path, {"draw_seed", own.draw_seed});
      const Index writes = written(own.tokens) / when.chunk, each = layer.length(when.chunk);
      const Index tokens = each > 0 && writes > max_count / each ? max_count : writes * each;
      if constexpr (requires { layer.tokens(own.memory); })
        fw::detail::check_count(
            path, {"the number of tokens of the memory", layer.tokens(own.memory), tokens, tokens,
                   " for the tokens of the sequence"});
    }
  }
  std::unique_ptr<OperationTrace> make_trace() const override {
    return std::make_unique<OwnTrace>(layer);
  }

  void forward(const Forward<S>& run) const override {
    auto& trace = run.template own_trace<OwnTrace>();
    for (std::size_t i = 0; i < trace.parameters.size(); ++i) trace.parameters[i] = run.weight(i);
    trace.sequences.resize(std::size_t(run.sequences()));
    trace.divergence = 0;
    trace.queries = run.in().cols();
    for (Index b = 0; b < run.sequences(); ++b) {
      auto& own = run.template own_state<State>().streams[std::size_t(b)];
      Segments& segments = trace.sequences[std::size_t(b)];
      segments.used = 0;
      segments.before = own.tokens;
      for (Index done = 0; done < run.streams.steps(b);)
        done += forward_segment(run, trace, own, b, done, next(segments));
      store_recent(run, own, b);
    }
  }

  void backward(const Backward<S>& run) const override {
    auto& trace = run.template own_trace<OwnTrace>();
    auto* const asked = run.template own_state_gradient<State>();
    set_zero_parameters(trace.gradient);
    for (Index b = 0; b < run.sequences(); ++b) {
      Segments& segments = trace.sequences[std::size_t(b)];
      LongTermStream<Memory>* const own = asked ? &asked->streams[std::size_t(b)] : nullptr;
      trace.dstate.assign(1, own ? own->memory : zero_gradient(layer.memory));
      if (own != nullptr) take_recent(run, *own, b, segments.before);
      for (Index i = segments.used - 1; i >= 0; --i)
        backward_segment(run, trace, b, segments.all[std::size_t(i)], segments.before, own);
      if (own != nullptr) own->memory = trace.dstate[0];
    }
    std::size_t i = 0;
    for_each_parameter([&](const std::string&, const auto& d) { run.dweight(i++) += d.matrix(); },
                       std::as_const(trace.gradient));
  }

 private:
  Index room() const { return when.window + when.chunk; }
  // Tokens in the memory after so many tokens.
  Index written(Index tokens) const {
    const Index left = std::max<Index>(0, tokens - when.window);
    return left - left % when.chunk;
  }

  static Segment& next(Segments& segments) {
    if (Index(segments.all.size()) == segments.used) segments.all.emplace_back();
    return segments.all[std::size_t(segments.used++)];
  }

  // Runs the segment that starts with token `first`, and returns its number of tokens. A chunk is
  // written as soon as its last token has left the window of the current one.
  Index forward_segment(const Forward<S>& run, OwnTrace& trace, LongTermStream<Memory>& own,
                        Index b, Index first, Segment& s) const {
    const Pass pass = run.train ? Pass::train : Pass::infer;
    const Index before = own.tokens, position = before + first;
    const Index in_memory = written(position), now = written(position + 1);
    s.writes = now > in_memory;
    if (s.writes) {
      s.chunk_first = in_memory - before;
      copy_chunk(run, own, b, s);
      make_draws(own, in_memory, s);
      trace.layer.write(own.memory, s.chunk, s.trace, pass, s.draws);
    }
    s.first = run.streams.first(b) + first;
    const Index next_write = now + when.chunk + when.window - 1;  // the position that writes next
    s.count = std::min(run.streams.steps(b) - first, next_write - position);
    Output<S> out(run.out().middleCols(s.first, s.count));
    trace.layer.read_context(own.memory, run.in(1).middleCols(s.first, s.count), out, s.trace,
                             pass);
    trace.divergence += s.trace.divergence * double(s.count);
    return s.count;
  }

  // `own`: the gradient of the stream before the pass, or null.
  void backward_segment(const Backward<S>& run, OwnTrace& trace, Index b, Segment& s, Index before,
                        LongTermStream<Memory>* own) const {
    trace.dqueries.resize(layer.inputs(), s.count);
    trace.layer.read_context_backward(run.in(1).middleCols(s.first, s.count), s.trace,
                                      run.dout().middleCols(s.first, s.count), trace.dqueries,
                                      trace.dstate[0], trace.gradient, trace.queries);
    run.din(1).middleCols(s.first, s.count) += trace.dqueries;
    if (!s.writes) return;
    trace.dchunk.resize(layer.inputs(), when.chunk);
    trace.layer.write_backward(s.chunk, s.trace, trace.dstate[0], trace.dchunk, trace.gradient);
    const Index start = run.streams.first(b);
    for (Index l = 0; l < when.chunk; ++l)
      if (const Index at = s.chunk_first + l; at >= 0)
        run.din().col(start + at) += trace.dchunk.col(l);
      else if (own != nullptr)
        own->recent.col((before + at) % room()) += trace.dchunk.col(l);
  }
  // The backward pass of store_recent.
  void take_recent(const Backward<S>& run, LongTermStream<Memory>& own, Index b,
                   Index before) const {
    const Index steps = run.streams.steps(b);
    for (Index t = std::max<Index>(0, steps - room()); t < steps; ++t) {
      auto column = own.recent.col((before + t) % room());
      run.din().col(run.streams.first(b) + t) += column;
      column.setZero();
    }
  }

  void copy_chunk(const Forward<S>& run, const LongTermStream<Memory>& own, Index b,
                  Segment& s) const {
    s.chunk.resize(layer.inputs(), when.chunk);
    const Index start = run.streams.first(b), before = own.tokens;
    for (Index l = 0; l < when.chunk; ++l)
      if (const Index at = s.chunk_first + l; at >= 0)
        s.chunk.col(l) = run.in().col(start + at);
      else
        s.chunk.col(l) = own.recent.col((before + at) % room());
  }
  // The draws depend on the chunk's place in the sequence alone, so any split gives the same.
  void make_draws(const LongTermStream<Memory>& own, Index in_memory, Segment& s) const {
    s.draws.resize(1, layer.draws());
    const auto count = static_cast<std::uint64_t>(s.draws.size());
    for (Index m = 0; m < s.draws.size(); ++m)
      s.draws(m) = S(uniform_at(
          static_cast<std::uint64_t>(own.draw_seed),
          static_cast<std::uint64_t>(in_memory) * count + static_cast<std::uint64_t>(m)));
  }
  void store_recent(const Forward<S>& run, LongTermStream<Memory>& own, Index b) const {
    const Index steps = run.streams.steps(b), before = own.tokens;
    for (Index t = std::max<Index>(0, steps - room()); t < steps; ++t)
      own.recent.col((before + t) % room()) = run.in().col(run.streams.first(b) + t);
    own.tokens += steps;
  }
};

namespace detail {

// A generator of one number: it gives the middle, or an end, of what a uniform draw can give.
struct OneUniform {
  double value;
  double uniform() const { return value; }
};

/// The weights of a network for the parameters of a record, which is initialised by uniform draws.
template <class S, class L>
std::vector<std::size_t> weights_of(Builder<S>& builder, const std::string& name, const L& record) {
  L middle = record, end = record;
  OneUniform half{0.5}, one{1};
  fw::initialise(middle, half);
  fw::initialise(end, one);
  std::vector<std::size_t> weights;
  for_each_parameter(
      [&](const std::string& of, const auto& m, const auto& e) {
        std::vector<Index> axes{m.rows()};
        if (!m.IsVectorAtCompileTime) axes.push_back(m.cols());
        const auto bound = fw::detail::real_part(S(e(0, 0) - m(0, 0)));
        Matrix<double> centre = m.matrix().real().template cast<double>();
        weights.push_back(builder.weight(name + '.' + of, std::move(axes),
                                         uniform_initialiser(double(bound)), std::move(centre)));
      },
      std::as_const(middle), std::as_const(end));
  return weights;
}

}  // namespace detail

/// Attention to a long-term memory of the tokens that have left a window of tokens. They are
/// written `chunk` at a time:
///
///     memory ← gate(X)             for the chunk X, once its last token has left the window
///     K = W_K B, V = W_V B         for the memory's coefficients B
///     y_h = V_h r(K_hᵀq_h/√d_h)    for every head
///
/// Up to chunk − 1 tokens that have left the window are not in the memory yet. Any split of a
/// sequence gives the same. `layer` is a LongTermLayer with the memory, the gate, the heads and the
/// penalty; its parameters are weights of the network under NAME.gate, NAME.key, NAME.value and
/// NAME.density, and its W_out is not used. The penalty kl.weight · KL is a mean over all queries
/// of a pass: backward includes its gradient, Network::penalty gives its value, and the state takes
/// no gradient. Without a penalty the gradients of earlier tokens are in that of the state, if
/// somebody asks for it. A memory that samples at random draws by the state's seed: see
/// fw::seed_draws.
///
/// Shapes: tokens, queries and y d×T. Cost per token: that of the layer's reads and writes. Throws
/// std::invalid_argument when a size does not fit. Martins, Marinho, Martins 2022, arXiv
/// 2109.00301, section 3.
template <class S, class L>
Value<S> long_term_attention(const Value<S>& tokens, const Value<S>& queries,
                             const std::string& name, L layer, const LongTermWindow& when) {
  Builder<S>& builder = *tokens.builder;
  const std::string path = builder.path(name);
  fw::detail::check_size<Dynamic>(path, "window", when.window);
  fw::detail::check_size<Dynamic>(path, "chunk", when.chunk);
  for (const Value<S>& each : {tokens, queries})
    if (each.rows() != layer.inputs())
      fw::detail::throw_mismatch(path, "an input", each.rows(), "rows", layer.inputs(),
                                 "the memory");
  layer.length(when.chunk);  // throws if the gate rejects chunks of this length
  layer.output.weight.resize(0, 0);
  std::vector<std::size_t> weights = detail::weights_of(builder, name, layer);
  const Index rows = layer.inputs();
  return builder.add(AttendLongTerm<L>(std::move(layer), when), rows, {tokens, queries},
                     std::move(weights), name);
}

}  // namespace fw::networks
