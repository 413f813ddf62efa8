#pragma once

#include <fastweights/core/random.hpp>
#include <fastweights/layers/attention/long_term_layer.hpp>
#include <fastweights/layers/projections/linear.hpp>

namespace fw {

/// How a short-term and a long-term answer come together.
enum class Join {
  sum,   ///< y = short + long
  alpha  ///< y = (1 − α) short + α long, α = sigmoid of a learned number, ½ at first
};

/// A short-term memory and a long-term one behind one layer: tokens that leave the short-term
/// window are remembered, `chunk` of them at a time, and every query is put to both.
///
///     y_t = short(x)_t + long(W_Q x_t)
///
/// `Short` is any layer that sees the last `window` tokens; `Long` is a LongTermLayer or has its
/// members. A chunk is written as soon as its last token has left the window of the current one, so
/// that any split of a sequence gives the same result (the gaps of up to chunk − 1 tokens that have
/// left the window and are not written yet are seen by neither).
///
/// The KL of the long-term layer is a mean over all queries of a pass. Gradients reach the tokens
/// of the sequence through both parts; how far back through the long-term memory's writes is the
/// memory's choice. What was seen before the sequence counts as constant. Shapes: x, y d×T. Throws
/// std::invalid_argument when a size does not fit. Martins, Marinho, Martins 2022, arXiv
/// 2109.00301, eq. 12 (sum).
template <Layer Short, class Long> struct JoinedAttention {
  using Scalar = typename Short::Scalar;
  using Matrix = Eigen::Matrix<Scalar, Dynamic, Dynamic>;
  static constexpr std::string_view name = "JoinedAttention";

  Short short_term;
  Linear<Scalar> query;
  Long long_term;
  Eigen::Matrix<Scalar, Dynamic, 1> mix;  ///< the number behind α; empty for a sum
  Index window;
  Index chunk;
  static constexpr auto names =
      fw::names("short_term", "query", "long_term", "mix", "window", "chunk");

  struct State {
    typename Short::State short_term;
    typename Long::State long_term;
    Matrix recent;      ///< the last window + chunk tokens, token p in column p mod their number
    Index tokens = 0;   ///< seen so far
    Index written = 0;  ///< of these, in the long-term memory
    Index seed = 0;     ///< at least 0; set by the caller, for a memory that draws at random
    static constexpr auto names =
        fw::names("short_term", "long_term", "recent", "tokens", "written", "seed");
  };

  /// Tokens first … first + count − 1 of a sequence see the long-term memory in one state; before
  /// them, a chunk may have been written.
  struct Stretch {
    Index first = 0, count = 0;
    bool writes = false;
    Index chunk_first = 0;  ///< of the chunk, counted from the start of the sequence
    Matrix chunk, draws;
    typename Long::Trace trace;
  };
  struct Trace {
    typename Short::Trace short_term;
    std::vector<Stretch> stretches;
    Index used = 0;           ///< stretches of the last pass
    Matrix queries, answers;  ///< to and from the long-term memory
    Matrix short_out;
    Matrix dqueries, dx, dchunk, danswers;
    std::vector<typename Long::State> dstate;
    Index trained = 0;
  };

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
      detail::throw_mismatch(name, "the long-term answer", long_term.outputs(), "rows", outputs(),
                             "the short-term one");
    long_term.length(chunk);  // throws for a gate that does not take such chunks
    mix.setZero(join == Join::alpha ? 1 : 0);
  }

  Index inputs() const { return short_term.inputs(); }
  Index outputs() const { return short_term.outputs(); }
  State initial_state() const {
    return {short_term.initial_state(), long_term.initial_state(),
            Matrix::Zero(inputs(), window + chunk)};
  }

  void forward(State& state, Input<Scalar> x, Output<Scalar> y, Trace& trace,
               Pass pass = Pass::infer) const {
    detail::check_forward(*this, x, y);
    detail::check_extent(name, "state.recent", state.recent, inputs(), window + chunk);
    if (state.seed < 0)
      throw std::invalid_argument(std::string(name) + ": state.seed is " +
                                  std::to_string(state.seed) + ", expected at least 0");
    trace.trained = 0;
    trace.queries.resize(inputs(), x.cols());
    for (auto* buffer : {&trace.answers, &trace.short_out}) buffer->resize(outputs(), x.cols());
    short_term.forward(state.short_term, x, trace.short_out, trace.short_term, pass);
    Nothing none;
    query.forward(none, x, trace.queries, none);
    trace.used = 0;
    for (Index done = 0; done < x.cols();) done += stretch(state, x, done, trace, pass);
    const auto [recent, distant] = shares();
    y = recent * trace.short_out + distant * trace.answers;
    remember(state, x);
    if (pass == Pass::train) trace.trained = x.cols();
  }

  void backward(Input<Scalar> x, Trace& trace, Input<Scalar> dy, Output<Scalar> dx,
                JoinedAttention& grad) const {
    detail::check_backward(*this, x, trace.trained, dy, dx, grad);
    const auto [recent, distant] = shares();
    if (mix.size() > 0)
      grad.mix[0] += recent * distant * dy.cwiseProduct(trace.answers - trace.short_out).sum();
    trace.danswers = recent * dy;
    short_term.backward(x, trace.short_term, trace.danswers, dx, grad.short_term);
    trace.danswers = distant * dy;
    trace.dqueries.resize(inputs(), x.cols());
    trace.dstate.assign(1, zero_gradient(long_term.memory));
    for (Index i = trace.used - 1; i >= 0; --i)
      stretch_backward(trace.stretches[static_cast<std::size_t>(i)], trace, dx, grad);
    query.add_backward(x, trace.dqueries, dx, grad.query);
  }

 private:
  std::pair<Scalar, Scalar> shares() const {
    if (mix.size() == 0) return {Scalar(1), Scalar(1)};
    const Scalar alpha = Sigmoid{}.value(mix[0]);
    return {Scalar(1) - alpha, alpha};
  }

  // The tokens from `done` on that see the same long-term memory; how many these are.
  Index stretch(State& state, const Input<Scalar>& x, Index done, Trace& trace, Pass pass) const {
    if (static_cast<Index>(trace.stretches.size()) == trace.used) trace.stretches.emplace_back();
    Stretch& s = trace.stretches[static_cast<std::size_t>(trace.used++)];
    const Index now = state.tokens + done;             // the position of the first of them
    const Index due = state.written + chunk + window;  // the next that sees a new chunk written
    s.writes = now >= due - 1;
    if (s.writes) {
      s.chunk_first = state.written - state.tokens;
      take_chunk(state, x, s);
      take_draws(state, s);
      long_term.write(state.long_term, s.chunk, s.trace, pass, s.draws);
      state.written += chunk;
    }
    s.first = done;
    const Index until = state.written + chunk + window - 1 - state.tokens;
    s.count = std::max<Index>(0, std::min(x.cols(), until) - done);
    if (s.count > 0) {
      Output<Scalar> answers(trace.answers.middleCols(s.first, s.count));
      long_term.read(state.long_term, trace.queries.middleCols(s.first, s.count), answers, s.trace,
                     pass);
    }
    return s.count;
  }

  void stretch_backward(Stretch& s, Trace& trace, Output<Scalar>& dx, JoinedAttention& grad) const {
    if (s.count > 0)
      long_term.read_backward(trace.queries.middleCols(s.first, s.count), s.trace,
                              trace.danswers.middleCols(s.first, s.count),
                              trace.dqueries.middleCols(s.first, s.count), trace.dstate[0],
                              grad.long_term, trace.trained);
    if (!s.writes) return;
    trace.dchunk.resize(inputs(), chunk);
    long_term.write_backward(s.chunk, s.trace, trace.dstate[0], trace.dchunk, grad.long_term);
    for (Index l = std::max<Index>(0, -s.chunk_first); l < chunk; ++l)
      dx.col(s.chunk_first + l) += trace.dchunk.col(l);
  }

  void take_chunk(const State& state, const Input<Scalar>& x, Stretch& s) const {
    s.chunk.resize(inputs(), chunk);
    for (Index l = 0; l < chunk; ++l) {
      const Index at = s.chunk_first + l;
      if (at >= 0)
        s.chunk.col(l) = x.col(at);
      else
        s.chunk.col(l) = state.recent.col((state.tokens + at) % state.recent.cols());
    }
  }

  // Of the chunk's place in the stream, so that it does not matter how the stream is cut.
  void take_draws(const State& state, Stretch& s) const {
    s.draws.resize(1, long_term.draws());
    for (Index m = 0; m < s.draws.size(); ++m)
      s.draws(m) =
          Scalar(uniform_at(static_cast<std::uint64_t>(state.seed),
                            static_cast<std::uint64_t>(state.written * s.draws.size() + m)));
  }

  void remember(State& state, const Input<Scalar>& x) const {
    const Index buffer = state.recent.cols();
    for (Index t = std::max<Index>(0, x.cols() - buffer); t < x.cols(); ++t)
      state.recent.col((state.tokens + t) % buffer) = x.col(t);
    state.tokens += x.cols();
  }
};

}  // namespace fw
