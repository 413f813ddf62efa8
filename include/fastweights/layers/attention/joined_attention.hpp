#pragma once

#include <fastweights/core/errors.hpp>
#include <fastweights/layers/attention/long_term_layer.hpp>
#include <fastweights/layers/projections/linear.hpp>
#include <fastweights/math/random.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// How JoinedAttention combines the short-term and the long-term output.
enum class Join {
  sum,   ///< y = short + long
  alpha  ///< y = (1 − α) short + α long, α = sigmoid of a learned scalar, initially ½
};

/// A layer with a short-term and a long-term memory: tokens that leave the short-term window are
/// written to the long-term memory, `chunk` tokens at a time, and every query reads both memories.
///
///     y_t = short(x)_t + long(W_Q x_t)
///
/// `Short` is any layer that attends to the last `window` tokens; `Long` is a LongTermLayer or a
/// type with the same members. A chunk is written as soon as its last token has left the window of
/// the current token, so any split of a sequence gives the same result. Up to chunk − 1 tokens that
/// have left the window and are not written yet are in neither memory.
///
/// The KL of the long-term layer is a mean over all queries of a pass. Gradients reach the tokens
/// of the sequence through both memories; the long-term memory decides how far back they go through
/// its writes. Tokens before the sequence are constants. Shapes: x, y d×T. Cost per token: that of
/// both layers, and 2 d² flops for W_Q. Throws std::invalid_argument when a size does not fit.
/// Martins, Marinho, Martins 2022, arXiv 2109.00301, eq. 12 (sum).
template <Layer Short, class Long> struct JoinedAttention {
  using Scalar = typename Short::Scalar;
  using Matrix = Eigen::Matrix<Scalar, Dynamic, Dynamic>;
  static constexpr std::string_view name = "JoinedAttention";

  Short short_term;  ///< attends to the last `window` tokens
  /// W_Q.
  Linear<Scalar> query;
  Long long_term;                         ///< what reads the tokens that have left the window
  Eigen::Matrix<Scalar, Dynamic, 1> mix;  ///< α = sigmoid(mix[0]); empty for Join::sum
  Index window;                           ///< tokens of the short-term memory
  Index chunk;                            ///< tokens per write to the long-term memory
  static constexpr auto names =
      fw::names("short_term", "query", "long_term", "mix", "window", "chunk");

  struct State {
    typename Short::State short_term;  ///< that of the short-term memory
    typename Long::State long_term;    ///< that of the long-term memory
    Matrix recent;     ///< the last window + chunk tokens, token p in column p mod (window + chunk)
    Index tokens = 0;  ///< tokens so far
    Index written = 0;  ///< tokens written to the long-term memory
    Index seed = 0;     ///< 0 to max_count; set by the caller, for a memory that samples at random
    static constexpr auto names =
        fw::names("short_term", "long_term", "recent", "tokens", "written", "seed");
  };

  /// Tokens first … first + count − 1 of a sequence, which read the same state of the long-term
  /// memory. A segment may start with the write of a chunk.
  struct Segment {
    /// Its tokens in the sequence.
    Index first = 0, count = 0;
    bool writes = false;         ///< whether a chunk is written before its tokens
    Index chunk_first = 0;       ///< the chunk's first token; negative before the sequence's start
    Matrix chunk, draws;         ///< the chunk that is written, and its random numbers
    typename Long::Trace trace;  ///< of the long-term layer
  };
  struct Trace {
    typename Short::Trace short_term;
    std::vector<Segment> segments;
    Index used = 0;              ///< segments of the last pass
    Matrix queries;              ///< of the long-term memory
    Matrix short_out, long_out;  ///< outputs of the two memories
    Matrix dqueries, dx, dchunk, dout;
    std::vector<typename Long::State> dstate;
    Index trained = 0;
  };

  /// A short-term layer with a window of `short_window` tokens and a long-term layer that takes
  /// chunks of `chunk_length`. Throws std::invalid_argument when a size does not fit.
  JoinedAttention(Short s, Long l, Index short_window, Index chunk_length, Join join = Join::sum)
      : short_term(std::move(s)),
        query(short_term.inputs(), l.inputs()),
        long_term(std::move(l)),
        window(short_window),
        chunk(chunk_length) {
    detail::check_size<Dynamic>(name, "window", window);
    detail::check_size<Dynamic>(name, "chunk", chunk);
    if constexpr (requires { short_term.window(); })
      if (short_term.window() != window)
        detail::throw_mismatch(name, "the short-term memory", short_term.window(), "tokens", window,
                               "the window");
    if (long_term.inputs() != inputs())
      detail::throw_mismatch(name, "the long-term memory", long_term.inputs(), "rows", inputs(),
                             "the short-term one");
    if (long_term.outputs() != outputs())
      detail::throw_mismatch(name, "the long-term output", long_term.outputs(), "rows", outputs(),
                             "the short-term one");
    long_term.length(chunk);  // throws if the gate rejects chunks of this length
    mix.setZero(join == Join::alpha ? 1 : 0);
  }

  Index inputs() const { return short_term.inputs(); }
  Index outputs() const { return short_term.outputs(); }
  State initial_state() const {
    return {short_term.initial_state(), long_term.initial_state(),
            Matrix::Zero(inputs(), window + chunk)};
  }
  /// Everything in a state follows from its number of tokens, except `seed`.
  void check_state(const State& state) const {
    fw::check_state(short_term, state.short_term);
    fw::check_state(long_term, state.long_term);
    detail::check_extent(name, "state.recent", state.recent, inputs(), window + chunk);
    const Index left = std::max<Index>(0, state.tokens - window), written = left - left % chunk;
    constexpr const char* why = " for its tokens";
    const auto check_tokens = [&](std::string_view member, Index given, Index expected) {
      detail::check_count(name, {member, given, expected, expected, why});
    };
    detail::check_count(name, {"tokens", state.tokens});
    detail::check_count(name, {"seed", state.seed});
    check_tokens("written", state.written, written);
    if constexpr (requires { short_term.tokens(state.short_term); })
      check_tokens("the number of tokens of short_term", short_term.tokens(state.short_term),
                   state.tokens);
    if constexpr (requires { long_term.tokens(state.long_term); }) {
      const Index writes = written / chunk, each = long_term.length(chunk);
      check_tokens("the number of tokens of long_term", long_term.tokens(state.long_term),
                   each > 0 && writes > max_count / each ? max_count : writes * each);
    }
  }

  void forward(State& state, Input<Scalar> x, Output<Scalar> y, Trace& trace,
               Pass pass = Pass::infer) const {
    detail::check_forward(*this, x, y);
    detail::check_whole(name, pass);
    check_state(state);
    trace.trained = 0;
    trace.queries.resize(inputs(), x.cols());
    for (auto* buffer : {&trace.long_out, &trace.short_out}) buffer->resize(outputs(), x.cols());
    short_term.forward(state.short_term, x, trace.short_out, trace.short_term, pass);
    Nothing none;
    query.forward(none, x, trace.queries, none);
    trace.used = 0;
    for (Index done = 0; done < x.cols();) done += forward_segment(state, x, done, trace, pass);
    const auto [short_weight, long_weight] = output_weights();
    y = short_weight * trace.short_out + long_weight * trace.long_out;
    store_recent(state, x);
    if (pass.trains()) trace.trained = x.cols();
  }

  void backward(Input<Scalar> x, Trace& trace, Input<Scalar> dy, Output<Scalar> dx,
                JoinedAttention& grad) const {
    detail::check_backward(*this, x, trace.trained, dy, dx, grad);
    const auto [short_weight, long_weight] = output_weights();
    if (mix.size() > 0)
      grad.mix[0] +=
          short_weight * long_weight * dy.cwiseProduct(trace.long_out - trace.short_out).sum();
    trace.dout = short_weight * dy;
    short_term.backward(x, trace.short_term, trace.dout, dx, grad.short_term);
    trace.dout = long_weight * dy;
    trace.dqueries.resize(inputs(), x.cols());
    trace.dstate.assign(1, zero_gradient(long_term.memory));
    for (Index i = trace.used - 1; i >= 0; --i)
      backward_segment(trace.segments[static_cast<std::size_t>(i)], trace, dx, grad);
    query.add_backward(x, trace.dqueries, dx, grad.query);
  }

 private:
  // The weights of the short-term and the long-term output in y.
  std::pair<Scalar, Scalar> output_weights() const {
    if (mix.size() == 0) return {Scalar(1), Scalar(1)};
    const Scalar alpha = Sigmoid{}.value(mix[0]);
    return {Scalar(1) - alpha, alpha};
  }

  // Runs the segment that starts with token `first`, and returns its number of tokens.
  Index forward_segment(State& state, const Input<Scalar>& x, Index first, Trace& trace,
                        Pass pass) const {
    if (static_cast<Index>(trace.segments.size()) == trace.used) trace.segments.emplace_back();
    Segment& s = trace.segments[static_cast<std::size_t>(trace.used++)];
    const Index position = state.tokens + first;
    const Index next_write = state.written + chunk + window - 1;  // a position
    s.writes = position >= next_write;
    if (s.writes) {
      s.chunk_first = state.written - state.tokens;
      copy_chunk(state, x, s);
      make_draws(state, s);
      long_term.write(state.long_term, s.chunk, s.trace, pass, s.draws);
      state.written += chunk;
    }
    s.first = first;
    const Index end = state.written + chunk + window - 1 - state.tokens;
    s.count = std::max<Index>(0, std::min(x.cols(), end) - first);
    if (s.count > 0) {
      Output<Scalar> out(trace.long_out.middleCols(s.first, s.count));
      long_term.read(state.long_term, trace.queries.middleCols(s.first, s.count), out, s.trace,
                     pass);
    }
    return s.count;
  }

  void backward_segment(Segment& s, Trace& trace, Output<Scalar>& dx, JoinedAttention& grad) const {
    if (s.count > 0)
      long_term.read_backward(trace.queries.middleCols(s.first, s.count), s.trace,
                              trace.dout.middleCols(s.first, s.count),
                              trace.dqueries.middleCols(s.first, s.count), trace.dstate[0],
                              grad.long_term, trace.trained);
    if (!s.writes) return;
    trace.dchunk.resize(inputs(), chunk);
    long_term.write_backward(s.chunk, s.trace, trace.dstate[0], trace.dchunk, grad.long_term);
    for (Index l = std::max<Index>(0, -s.chunk_first); l < chunk; ++l)
      dx.col(s.chunk_first + l) += trace.dchunk.col(l);
  }

  void copy_chunk(const State& state, const Input<Scalar>& x, Segment& s) const {
    s.chunk.resize(inputs(), chunk);
    for (Index l = 0; l < chunk; ++l) {
      const Index at = s.chunk_first + l;
      if (at >= 0)
        s.chunk.col(l) = x.col(at);
      else
        s.chunk.col(l) = state.recent.col((state.tokens + at) % state.recent.cols());
    }
  }

  // The draws depend on the chunk's position in the stream alone, so any split of the stream gives
  // the same draws.
  void make_draws(const State& state, Segment& s) const {
    s.draws.resize(1, long_term.draws());
    for (Index m = 0; m < s.draws.size(); ++m)
      s.draws(m) = Scalar(uniform_at(
          static_cast<std::uint64_t>(state.seed),
          static_cast<std::uint64_t>(state.written) * static_cast<std::uint64_t>(s.draws.size()) +
              static_cast<std::uint64_t>(m)));
  }

  void store_recent(State& state, const Input<Scalar>& x) const {
    const Index capacity = state.recent.cols();
    for (Index t = std::max<Index>(0, x.cols() - capacity); t < x.cols(); ++t)
      state.recent.col((state.tokens + t) % capacity) = x.col(t);
    state.tokens += x.cols();
  }
};

}  // namespace fw
