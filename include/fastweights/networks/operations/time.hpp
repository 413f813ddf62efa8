#pragma once

#include <fastweights/networks/operations/weights.hpp>

/// \file
/// Operations that see earlier tokens of the sequence through a state of a few tokens.

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// The last tokens of every sequence.
template <class S> struct RecentTokens {
  Matrix<S> recent;  ///< rows×(B·tokens), oldest first
  static constexpr auto names = fw::names("recent");
};

/// A depthwise causal convolution, y_t = Σ_j w_j ⊙ x_{t−K+1+j}: every row has a filter of its own.
/// Zeros precede the first token. The taps have the order of PyTorch's Conv1d with groups =
/// channels: the last tap is for the current token.
template <class S> struct Convolve final : Operation<S> {
  Index kernel, channels;  ///< tokens that the kernel covers; rows of x

  struct OwnTrace final : OperationTrace {
    Matrix<S> padded;  ///< for each sequence K − 1 tokens before x, then x
  };

  Convolve(Index k, Index c) : kernel(k), channels(c) {}

  std::unique_ptr<StatePart> initial_state(Index sequences) const override {
    return std::make_unique<StateOfPart<RecentTokens<S>>>(
        RecentTokens<S>{Matrix<S>::Zero(channels, sequences * (kernel - 1))});
  }
  std::unique_ptr<StatePart> state_gradient(Index sequences) const override {
    return initial_state(sequences);
  }
  void check_state(const Forward<S>& run) const override {
    fw::detail::check_extent(run.node.path, "the state",
                             run.template own_state<RecentTokens<S>>().recent, channels,
                             run.sequences() * (kernel - 1));
  }
  std::unique_ptr<OperationTrace> make_trace() const override {
    return std::make_unique<OwnTrace>();
  }

  void forward(const Forward<S>& run) const override {
    const auto x = run.in();
    auto y = run.out();
    auto& recent = run.template own_state<RecentTokens<S>>().recent;
    auto& padded = run.template own_trace<OwnTrace>().padded;
    const Index padding = kernel - 1;
    padded.resize(channels, x.cols() + run.sequences() * padding);
    for (Index b = 0; b < run.sequences(); ++b) {
      const Index first = run.streams.first(b), steps = run.streams.steps(b);
      auto window = padded.middleCols(first + b * padding, padding + steps);
      window.leftCols(padding) = recent.middleCols(b * padding, padding);
      window.rightCols(steps) = x.middleCols(first, steps);
      recent.middleCols(b * padding, padding) = window.rightCols(padding);
      for (Index t = 0; t < steps; ++t) {
        auto yt = y.col(first + t);
        yt = run.weight().col(0).cwiseProduct(window.col(t));
        for (Index j = 1; j < kernel; ++j)
          yt += run.weight().col(j).cwiseProduct(window.col(t + j));
      }
    }
  }

  void backward(const Backward<S>& run) const override {
    const auto dy = run.dout();
    auto dx = run.din();
    const auto& padded = run.template own_trace<OwnTrace>().padded;
    const Index padding = kernel - 1;
    auto* const asked = run.template own_state_gradient<RecentTokens<S>>();
    if (asked != nullptr) add_recent(run, *asked);
    for (Index b = 0; b < run.sequences(); ++b) {
      const Index first = run.streams.first(b), end = first + run.streams.steps(b);
      for (Index t = first; t < end; ++t)
        for (Index j = 0; j < kernel; ++j) {
          run.dweight().col(j) += dy.col(t).cwiseProduct(padded.col(t + b * padding + j));
          const Index from = t + j - padding;
          if (from >= first)
            dx.col(from) += run.weight().col(j).cwiseProduct(dy.col(t));
          else if (asked != nullptr)
            asked->recent.col((b + 1) * padding + from - first) +=
                run.weight().col(j).cwiseProduct(dy.col(t));
        }
    }
  }

 private:
  // Adds the gradient of the last tokens to where they came from: to this pass, or to the tokens
  // before it.
  void add_recent(const Backward<S>& run, RecentTokens<S>& asked) const {
    const Index padding = kernel - 1;
    const Matrix<S> after = asked.recent;
    asked.recent.setZero();
    for (Index b = 0; b < run.sequences(); ++b)
      for (Index j = 0; j < padding; ++j) {
        const Index token = run.streams.steps(b) - padding + j;  // below 0: before this pass
        if (token >= 0)
          run.din().col(run.streams.first(b) + token) += after.col(b * padding + j);
        else
          asked.recent.col((b + 1) * padding + token) += after.col(b * padding + j);
      }
  }
};
/// The depthwise causal convolution of x over `kernel` tokens, with the weight `name`.weight and,
/// with a bias, `name`.bias.
template <class S>
Value<S> convolution(const Value<S>& x, const std::string& name, Index kernel, bool bias = false) {
  Builder<S>& builder = *x.builder;
  const Initialiser draw = uniform_initialiser(1 / std::sqrt(double(kernel)));
  const Value<S> y =
      builder.add(Convolve<S>(kernel, x.rows()), x.rows(), {x},
                  {builder.weight(name + ".weight", {x.rows(), kernel}, draw)}, name);
  return bias ? y + parameter(builder, name + ".bias", x.rows(), draw) : y;
}

/// The token before: x_{t−1}, and 0 before the first token.
template <class S> struct TokenShift final : Operation<S> {
  Index rows;  ///< rows of x

  explicit TokenShift(Index n) : rows(n) {}

  std::unique_ptr<StatePart> initial_state(Index sequences) const override {
    return std::make_unique<StateOfPart<RecentTokens<S>>>(
        RecentTokens<S>{Matrix<S>::Zero(rows, sequences)});
  }
  std::unique_ptr<StatePart> state_gradient(Index sequences) const override {
    return initial_state(sequences);
  }
  void check_state(const Forward<S>& run) const override {
    fw::detail::check_extent(run.node.path, "the state",
                             run.template own_state<RecentTokens<S>>().recent, rows,
                             run.sequences());
  }
  void forward(const Forward<S>& run) const override {
    const auto x = run.in();
    auto y = run.out();
    auto& recent = run.template own_state<RecentTokens<S>>().recent;
    for (Index b = 0; b < run.sequences(); ++b) {
      const Index first = run.streams.first(b), steps = run.streams.steps(b);
      if (steps == 0) continue;
      y.col(first) = recent.col(b);
      y.middleCols(first + 1, steps - 1) = x.middleCols(first, steps - 1);
      recent.col(b) = x.col(first + steps - 1);
    }
  }
  void backward(const Backward<S>& run) const override {
    auto* const asked = run.template own_state_gradient<RecentTokens<S>>();
    for (Index b = 0; b < run.sequences(); ++b) {
      const Index first = run.streams.first(b), steps = run.streams.steps(b);
      if (steps == 0) continue;
      run.din().middleCols(first, steps - 1) += run.dout().middleCols(first + 1, steps - 1);
      if (asked == nullptr) continue;
      run.din().col(first + steps - 1) += asked->recent.col(b);
      asked->recent.col(b) = run.dout().col(first);
    }
  }
};
/// x_{t−1}. The state keeps the last token under `state_name`.
template <class S>
Value<S> token_shift(const Value<S>& x, const std::string& state_name = "previous") {
  return x.builder->add(TokenShift<S>(x.rows()), x.rows(), {x}, {}, state_name);
}

/// The tokens as they are, but the first of every sequence, all of whose entries are `first`.
template <class S> struct StartWith final : Operation<S> {
  static constexpr bool sees_position = true;
  S first;  ///< the entries of the token at position 0

  explicit StartWith(S value) : first(value) {}
  void forward(const Forward<S>& run) const override {
    auto y = run.out();
    y = run.in();
    for (Index b = 0; b < run.sequences(); ++b)
      if (begins(run, b)) y.col(run.streams.first(b)).setConstant(first);
  }
  void backward(const Backward<S>& run) const override {
    for (Index b = 0; b < run.sequences(); ++b) {
      const Index from = run.streams.first(b) + begins(run, b);
      const Index count = run.streams.first(b) + run.streams.steps(b) - from;
      run.din().middleCols(from, count) += run.dout().middleCols(from, count);
    }
  }

 private:
  // True if the pass has the first token of sequence b.
  static bool begins(const Forward<S>& run, Index b) {
    return run.streams.position(b) == 0 && run.streams.steps(b) > 0;
  }
};
/// x, but `first` in all entries of the first token of a sequence.
template <class S> Value<S> start_with(double first, const Value<S>& x) {
  return x.builder->add(StartWith<S>(S(first)), x.rows(), {x});
}

/// Rotary positions: the first `rotated` entries of every head turn in pairs by position·θ^{−2i/r}.
/// Su et al. 2021, arXiv 2104.09864, eq. 34, with the pairs (i, i + r/2), or (2i, 2i + 1) if
/// `adjacent`, whose result is in the order of halves.
template <class S> struct RotaryEmbedding final : Operation<S> {
  static constexpr bool sees_position = true;
  Index heads, rotated;  ///< heads of x, and the entries of each that turn
  double theta;          ///< θ
  bool adjacent;         ///< whether neighbours are a pair

  RotaryEmbedding(Index h, Index r, double base, bool pairs)
      : heads(h), rotated(r), theta(base), adjacent(pairs) {}

  void forward(const Forward<S>& run) const override {
    auto y = run.out();
    y = run.in();
    turn(run, run.in(), [&](Index i, Index i1, Index i2, Index t, S c, S s) {
      const S x1 = run.in()(i1, t), x2 = run.in()(i2, t);
      y(i, t) = x1 * c - x2 * s;
      y(i + rotated / 2, t) = x2 * c + x1 * s;
    });
  }
  void backward(const Backward<S>& run) const override {
    const auto dy = run.dout();
    auto dx = run.din();
    const Index d = dx.rows() / heads;
    for (Index h = 0; h < heads; ++h)
      dx.middleRows(h * d + rotated, d - rotated) += dy.middleRows(h * d + rotated, d - rotated);
    turn(run, run.in(), [&](Index i, Index i1, Index i2, Index t, S c, S s) {
      const S dy1 = dy(i, t), dy2 = dy(i + rotated / 2, t);
      dx(i1, t) += dy1 * c + dy2 * s;
      dx(i2, t) += dy2 * c - dy1 * s;
    });
  }

 private:
  // Calls f(row of the first result, rows of the two inputs, token, cosine, sine).
  template <class F> void turn(const Forward<S>& run, const Input<S>& x, const F& f) const {
    const Index d = x.rows() / heads, half = rotated / 2, steps = run.streams.most_steps();
    for (Index i = 0; i < half; ++i) {
      const double speed = std::pow(theta, -2.0 * double(i) / double(rotated));
      for (Index t = 0; t < steps; ++t) {
        S c(1), s(0);
        Index computed = -1;  // the position of c and s, which sequences share
        for (Index b = 0; b < run.sequences(); ++b) {
          if (t >= run.streams.steps(b)) continue;
          if (const Index position = run.streams.position(b) + t; position != computed) {
            const double angle = double(position) * speed;
            c = S(std::cos(angle)), s = S(std::sin(angle)), computed = position;
          }
          for (Index h = 0; h < heads; ++h) {
            const Index first = h * d;
            f(first + i, first + (adjacent ? 2 * i : i), first + (adjacent ? 2 * i + 1 : i + half),
              run.streams.first(b) + t, c, s);
          }
        }
      }
    }
  }
};
/// Rotary positions: the first `rotated` entries of every head turn. See Rotate.
template <class S>
Value<S> rotary_embedding(const Value<S>& x, Index heads, Index rotated, double theta,
                          bool adjacent = false) {
  const Index d = x.rows_of_part(heads);
  if (rotated % 2 != 0 || rotated < 0 || rotated > d)
    fw::detail::throw_invalid({x.builder->path(), ": ", std::to_string(rotated),
                               " entries of a head are to rotate, expected an even number of at "
                               "most ",
                               std::to_string(d)});
  if (rotated == 0) return x;
  return x.builder->add(RotaryEmbedding<S>(heads, rotated, theta, adjacent), x.rows(), {x});
}

}  // namespace fw::networks
