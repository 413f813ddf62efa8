#pragma once

#include <algorithm>
#include <fastweights/networks/operations/weights.hpp>

/// \file
/// Operations that see later tokens, for networks that read a sequence both ways. They need the
/// whole sequence in one pass. A pass that continues a sequence, or reads a prompt in pieces,
/// throws std::invalid_argument and changes nothing.

namespace fw::inline FASTWEIGHTS_ABI::networks {

namespace detail {

// Throws unless every sequence with tokens in this pass begins and ends in it.
template <class S> void check_whole_sequences(const Forward<S>& run) {
  for (Index b = 0; b < run.sequences(); ++b)
    if (run.streams.steps(b) > 0 && run.streams.position(b) + run.streams.later(b) > 0)
      fw::detail::throw_invalid({run.node.path, ": sequence ", std::to_string(b), " has ",
                                 std::to_string(run.streams.position(b)), " tokens before and ",
                                 std::to_string(run.streams.later(b)),
                                 " behind this pass, expected the whole sequence in one pass"});
}

}  // namespace detail

/// The tokens of every sequence from the last to the first: see reversed().
template <class S> struct Reverse final : Operation<S> {
  static constexpr bool sees_position = true;

  bool needs_whole_sequences() const override { return true; }
  bool needs_first_token() const override { return true; }
  void check_state(const Forward<S>& run) const override { detail::check_whole_sequences(run); }

  void forward(const Forward<S>& run) const override {
    for_each_token(run, [&](Index from, Index to) { run.out().col(to) = run.in().col(from); });
  }
  void backward(const Backward<S>& run) const override {
    for_each_token(run, [&](Index from, Index to) { run.din().col(from) += run.dout().col(to); });
  }

 private:
  template <class F> static void for_each_token(const Forward<S>& run, const F& f) {
    for (Index b = 0; b < run.sequences(); ++b)
      for (Index t = 0, n = run.streams.steps(b); t < n; ++t)
        f(run.streams.first(b) + t, run.streams.first(b) + n - 1 - t);
  }
};

/// The sequence backwards, y_t = x_{T−1−t}: what reads it, reads from the last token to the first.
/// Shapes: x and y alike. Cost: a copy. Throws std::invalid_argument for a part of a sequence.
template <class S> Value<S> reversed(const Value<S>& x) {
  return x.builder->add(Reverse<S>(), x.rows(), {x}, {}, "reversed");
}

/// A depthwise convolution that sees later tokens: see centred_convolution().
template <class S> struct CentredConvolution final : Operation<S> {
  static constexpr bool sees_position = true;
  Index kernel, before;  ///< taps, and how many tokens back the first one reads

  CentredConvolution(Index k, Index ahead) : kernel(k), before(k - 1 - ahead) {}

  bool needs_whole_sequences() const override { return true; }
  bool needs_first_token() const override { return true; }
  void check_state(const Forward<S>& run) const override { detail::check_whole_sequences(run); }

  void forward(const Forward<S>& run) const override {
    run.out().setZero();
    const auto& taps = run.weight();
    for_each_tap(run, [&](Index j, Index from, Index to) {
      run.out().col(to) += taps.col(j).cwiseProduct(run.in().col(from));
    });
  }
  void backward(const Backward<S>& run) const override {
    for_each_tap(run, [&](Index j, Index from, Index to) {
      run.dweight().col(j) += run.dout().col(to).cwiseProduct(run.in().col(from));
      run.din().col(from) += run.weight().col(j).cwiseProduct(run.dout().col(to));
    });
  }

 private:
  // Calls f(tap, column of x, column of y) for the tokens of x that exist.
  template <class F> void for_each_tap(const Forward<S>& run, const F& f) const {
    for (Index b = 0; b < run.sequences(); ++b) {
      const Index first = run.streams.first(b), end = first + run.streams.steps(b);
      for (Index t = first; t < end; ++t)
        for (Index from = std::max(first, t - before); from < std::min(end, t - before + kernel);
             ++from)
          f(from - (t - before), from, t);
    }
  }
};

/// A depthwise convolution that also reads later tokens, y_t = b + Σ_{j<K} w_j ⊙ x_{t + j + a − K +
/// 1}: the last of its K taps is for the token `ahead` = a places later, and tokens outside of the
/// sequence are zeros. a = 0 is convolution(). The weights are those of PyTorch's Conv1d with
/// groups = channels: `name`.weight [D, K] and `name`.bias [D]. Shapes: x and y D×T. Cost per
/// token: 2 K D flops. Throws std::invalid_argument for a kernel below 1, `ahead` outside of 0 to
/// K − 1, or in a pass for a part of a sequence.
template <class S>
Value<S> centred_convolution(const Value<S>& x, const std::string& name, Index kernel, Index ahead,
                             bool bias = false) {
  Builder<S>& builder = *x.builder;
  if (kernel < 1 || ahead < 0 || ahead >= kernel)
    fw::detail::throw_invalid({builder.path(name), ": a kernel of ", std::to_string(kernel),
                               " tokens, ", std::to_string(ahead),
                               " of them ahead; expected one at least, and fewer ahead"});
  const Initialiser draw = uniform_initialiser(1 / std::sqrt(double(kernel)));
  const Value<S> y =
      builder.add(CentredConvolution<S>(kernel, ahead), x.rows(), {x},
                  {builder.weight(name + ".weight", {x.rows(), kernel}, draw)}, name);
  return bias ? y + parameter(builder, name + ".bias", x.rows(), draw) : y;
}

}  // namespace fw::networks
