#pragma once

#include <algorithm>
#include <fastweights/math/products.hpp>
#include <fastweights/networks/operations/convolution.hpp>
#include <string>
#include <string_view>

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// The options of a convolution over the frames of tokens.
struct FrameConvolutionOptions {
  Index kernel;        ///< K, the frames that one output reads
  Index channels = 1;  ///< D, the rows of a frame of x
  Index outputs = 0;   ///< R, the rows of a frame of y; 0: D
  Index stride = 1;    ///< s, frames from one output to the next
  Index padding = 0;   ///< p, frames of zeros at both ends of a token
  Index history = 0;   ///< h, the frames before the token's that it reads too
  bool bias = false;   ///< whether b is added
};

/// A strided convolution over the frames of every token: see frame_convolution().
template <class S> struct FrameConvolution final : Operation<S> {
  Index channels, outputs;                 ///< rows of a frame of x and of y
  Index frames, given;                     ///< of a token of x and of y
  Index kernel, stride, padding, history;  ///< as in the options

  struct OwnTrace final : OperationTrace {
    Matrix<S> stream;   ///< for each sequence h frames before x, then the frames of x
    Matrix<S> windows;  ///< K D rows: one column for each frame of y, what it reads
    Matrix<S> y;        ///< one column for each frame of y, and its gradient
    Matrix<S> dstream, dwindows;
  };

  /// For x of `rows` rows.
  FrameConvolution(Index rows, const FrameConvolutionOptions& o)
      : channels(o.channels),
        outputs(o.outputs),
        frames(rows / o.channels),
        given((o.history + frames + 2 * o.padding - o.kernel) / o.stride + 1),
        kernel(o.kernel),
        stride(o.stride),
        padding(o.padding),
        history(o.history) {}

  std::unique_ptr<StatePart> initial_state(Index sequences) const override {
    if (history == 0) return nullptr;
    return std::make_unique<StateOfPart<RecentTokens<S>>>(
        RecentTokens<S>{Matrix<S>::Zero(channels, sequences * history)});
  }
  std::unique_ptr<StatePart> state_gradient(Index sequences) const override {
    return initial_state(sequences);
  }
  void check_state(const Forward<S>& run) const override {
    if (history > 0)
      fw::detail::check_extent(run.node.path, "the state",
                               run.template own_state<RecentTokens<S>>().recent, channels,
                               run.sequences() * history);
  }
  std::unique_ptr<OperationTrace> make_trace() const override {
    return std::make_unique<OwnTrace>();
  }

  void forward(const Forward<S>& run) const override {
    auto& trace = run.template own_trace<OwnTrace>();
    const Index tokens = run.out().cols();
    trace.stream.resize(channels, run.sequences() * history + tokens * frames);
    trace.windows.resize(channels * kernel, tokens * given);
    trace.y.resize(outputs, tokens * given);
    for (Index b = 0; b < run.sequences(); ++b) fill_stream(run, b, trace.stream);
    for_each_window(run, [&](Index column, Index skipped, Index first, Index count) {
      auto window = trace.windows.col(column);
      window.head(skipped * channels).setZero();
      window.segment(skipped * channels, count * channels) = numbers(trace.stream, first, count);
      window.tail((kernel - skipped - count) * channels).setZero();
    });
    multiply(run.weight(), trace.windows, trace.y);
    for (Index t = 0; t < tokens; ++t) run.out().col(t) = numbers(trace.y, t * given, given);
  }

  void backward(const Backward<S>& run) const override {
    auto& trace = run.template own_trace<OwnTrace>();
    for (Index t = 0; t < run.dout().cols(); ++t)
      numbers(trace.y, t * given, given) = run.dout().col(t);
    trace.dwindows.resize(trace.windows.rows(), trace.windows.cols());
    multiply_gradients(run, trace);
    trace.dstream.setZero(channels, trace.stream.cols());
    for_each_window(run, [&](Index column, Index skipped, Index first, Index count) {
      numbers(trace.dstream, first, count) +=
          trace.dwindows.col(column).segment(skipped * channels, count * channels);
    });
    for (Index b = 0; b < run.sequences(); ++b) give_stream(run, b, trace.dstream);
  }

 private:
  // Frames of a matrix with one in each column, as one vector.
  template <class M> static auto numbers(M& all, Index first, Index count) {
    using Vector = Eigen::Matrix<S, Dynamic, 1>;
    using Plain = std::conditional_t<std::is_const_v<M>, const Vector, Vector>;
    return Eigen::Map<Plain>(all.data() + first * all.rows(), count * all.rows());
  }
  // The first column of sequence b, of the h frames before its tokens.
  Index start_of(const Forward<S>& run, Index b) const {
    return b * history + run.streams.first(b) * frames;
  }

  void fill_stream(const Forward<S>& run, Index b, Matrix<S>& stream) const {
    const Index start = start_of(run, b), steps = run.streams.steps(b);
    for (Index t = 0; t < steps; ++t)
      numbers(stream, start + history + t * frames, frames) =
          run.in().col(run.streams.first(b) + t);
    if (history == 0) return;
    auto recent = run.template own_state<RecentTokens<S>>().recent.middleCols(b * history, history);
    stream.middleCols(start, history) = recent;
    recent = stream.middleCols(start + steps * frames, history);
  }
  void give_stream(const Backward<S>& run, Index b, Matrix<S>& dstream) const {
    const Index start = start_of(run, b), steps = run.streams.steps(b);
    if (auto* const asked = run.template own_state_gradient<RecentTokens<S>>(); asked != nullptr) {
      auto recent = asked->recent.middleCols(b * history, history);
      dstream.middleCols(start + steps * frames, history) += recent;
      recent = dstream.middleCols(start, history);
    }
    for (Index t = 0; t < steps; ++t)
      run.din().col(run.streams.first(b) + t) +=
          numbers(dstream, start + history + t * frames, frames);
  }

  // Calls f(column of the windows, frames of zeros before, first frame of the stream, frames) for
  // every frame of y.
  template <class F> void for_each_window(const Forward<S>& run, const F& f) const {
    const Index size = history + frames;
    for (Index b = 0; b < run.sequences(); ++b)
      for (Index t = 0; t < run.streams.steps(b); ++t)
        for (Index i = 0; i < given; ++i) {
          const Index from = i * stride - padding;
          const Index first = std::clamp<Index>(from, 0, size);
          const Index last = std::clamp<Index>(from + kernel, first, size);
          f((run.streams.first(b) + t) * given + i, std::clamp<Index>(first - from, 0, kernel),
            start_of(run, b) + t * frames + first, last - first);
        }
  }

  // With one channel the matrix of the weight is that of the convolution.
  void multiply(const Matrix<S>& weight, const Matrix<S>& windows, Matrix<S>& y) const {
    if (channels == 1) return fw::detail::set_product(y, weight, windows, fw::detail::one_block);
    y.setZero();
    for (Index j = 0; j < kernel; ++j)
      fw::detail::add_product(y, transposed_tap(weight, j, outputs).transpose(),
                              windows.middleRows(j * channels, channels), fw::detail::one_block);
  }
  void multiply_gradients(const Backward<S>& run, OwnTrace& trace) const {
    if (channels == 1) {
      fw::detail::add_product(run.dweight(), trace.y, trace.windows.transpose(),
                              fw::detail::one_block);
      fw::detail::set_product(trace.dwindows, run.weight().transpose(), trace.y,
                              fw::detail::one_block);
      return;
    }
    for (Index j = 0; j < kernel; ++j) {
      auto dtap = transposed_tap(run.dweight(), j, outputs);
      auto dpart = trace.dwindows.middleRows(j * channels, channels);
      fw::detail::add_product(dtap, trace.windows.middleRows(j * channels, channels),
                              trace.y.transpose(), fw::detail::one_block);
      fw::detail::set_product(dpart, transposed_tap(run.weight(), j, outputs), trace.y,
                              fw::detail::one_block);
    }
  }
};

/// A convolution with a stride over the frames of every token: of a piece of sound that is one
/// token, for example. A token of x is F frames of D rows, one after the other. Frame i of y is
///
///     y_i = b + Σ_{j<K} W_j x_{s i + j − p}
///
/// where frames 0 to h + F − 1 are the last h frames before the token (zeros at first) and the
/// token's, and others are zeros. It has ⌊(h + F + 2p − K) / s⌋ + 1 frames of R rows. With F a
/// multiple of s, h = K − s and p = 0 the frames of all tokens together are the convolution of the
/// whole stream, with K − s zeros before it. The weights are those of PyTorch's Conv1d:
/// `name`.weight [R, D, K] and `name`.bias [R]. Shapes: x DF×T; the state holds h frames. Cost per
/// frame of y: 2 R K D flops. Throws std::invalid_argument for sizes below 1, a negative padding or
/// history, rows that are no whole frames, or a kernel that is longer than a token with them.
template <class S>
Value<S> frame_convolution(const Value<S>& x, const std::string& name, FrameConvolutionOptions o) {
  Builder<S>& builder = *x.builder;
  if (o.outputs == 0) o.outputs = o.channels;
  const std::string path = builder.path(name);
  constexpr double longest = 1e9;  // so that no size of a state overflows
  const auto check = [&](std::string_view what, Index size, Index least) {
    if (size < least || double(size) > longest)
      fw::detail::throw_invalid({path, ": ", what, " is ", std::to_string(size), ", expected ",
                                 std::to_string(least), " to 1e9"});
  };
  check("channels", o.channels, 1);
  check("outputs", o.outputs, 1);
  check("kernel", o.kernel, 1);
  check("stride", o.stride, 1);
  check("padding", o.padding, 0);
  check("history", o.history, 0);
  if (x.rows() % o.channels != 0)
    fw::detail::throw_invalid({path, ": ", std::to_string(x.rows()), " rows are no frames of ",
                               std::to_string(o.channels), " channels"});
  const Index frames = o.history + x.rows() / o.channels + 2 * o.padding;
  if (o.kernel > frames)
    fw::detail::throw_invalid({path, ": a kernel of ", std::to_string(o.kernel),
                               " frames is longer than a token with padding and history, ",
                               std::to_string(frames), " frames"});
  const Initialiser draw =
      uniform_initialiser(1 / std::sqrt(double(o.channels) * double(o.kernel)));
  const std::size_t weight =
      builder.weight(name + ".weight", {o.outputs, o.channels, o.kernel}, draw);
  FrameConvolution<S> operation(x.rows(), o);
  const Index given = operation.given;
  const Value<S> y = builder.add(std::move(operation), o.outputs * given, {x}, {weight}, name);
  return o.bias ? y + tile(parameter(builder, name + ".bias", o.outputs, draw), given) : y;
}

}  // namespace fw::networks
