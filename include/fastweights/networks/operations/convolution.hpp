#pragma once

#include <fastweights/math/products.hpp>
#include <fastweights/networks/operations/time.hpp>

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// The options of a convolution over tokens.
struct ConvolutionOptions {
  Index kernel;        ///< K, the taps: tokens that one output reads
  Index outputs = 0;   ///< rows of y; 0: those of x
  Index groups = 1;    ///< each maps its rows of x to its rows of y
  Index dilation = 1;  ///< δ, the distance between the tokens that one output reads
  bool bias = false;   ///< whether b is added
};

/// The weights of tap j of a convolution, transposed: one column for each output. They are
/// contiguous, because the matrix of a weight has the taps as columns.
template <class M> auto transposed_tap(M& weight, Index j, Index outputs) {
  using S = typename M::Scalar;
  using Plain = std::conditional_t<std::is_const_v<M>, const Matrix<S>, Matrix<S>>;
  return Eigen::Map<Plain>(weight.col(j).data(), weight.rows() / outputs, outputs);
}

/// A causal convolution with groups and dilation: see convolution(). One product for each tap and
/// group takes all tokens of a sequence.
template <class S> struct GroupedConvolution final : Operation<S> {
  Index channels, outputs;         ///< rows of x and of y
  Index kernel, groups, dilation;  ///< as in the options

  struct OwnTrace final : OperationTrace {
    Matrix<S> padded;   ///< for each sequence δ (K − 1) tokens before x, then x
    Matrix<S> dpadded;  ///< the gradient of these, for one sequence
  };

  /// For x of `rows` rows.
  GroupedConvolution(Index rows, const ConvolutionOptions& o)
      : channels(rows),
        outputs(o.outputs),
        kernel(o.kernel),
        groups(o.groups),
        dilation(o.dilation) {}

  std::unique_ptr<StatePart> initial_state(Index sequences) const override {
    return std::make_unique<StateOfPart<RecentTokens<S>>>(
        RecentTokens<S>{Matrix<S>::Zero(channels, sequences * padding())});
  }
  std::unique_ptr<StatePart> state_gradient(Index sequences) const override {
    return initial_state(sequences);
  }
  void check_state(const Forward<S>& run) const override {
    fw::detail::check_extent(run.node.path, "the state",
                             run.template own_state<RecentTokens<S>>().recent, channels,
                             run.sequences() * padding());
  }
  std::unique_ptr<OperationTrace> make_trace() const override {
    return std::make_unique<OwnTrace>();
  }

  void forward(const Forward<S>& run) const override {
    auto& recent = run.template own_state<RecentTokens<S>>().recent;
    auto& padded = run.template own_trace<OwnTrace>().padded;
    const auto x = run.in();
    padded.resize(channels, x.cols() + run.sequences() * padding());
    for (Index b = 0; b < run.sequences(); ++b) {
      auto window = window_of(run, b, padded);
      auto y = run.out().columns(run.streams.first(b), run.streams.steps(b));
      window.leftCols(padding()) = recent.middleCols(b * padding(), padding());
      window.rightCols(y.cols()) = x.middleCols(run.streams.first(b), y.cols());
      recent.middleCols(b * padding(), padding()) = window.rightCols(padding());
      y.setZero();
      for (Index j = 0; j < kernel; ++j)
        add_tap(run.weight(), j, window.middleCols(j * dilation, y.cols()), y);
    }
  }

  void backward(const Backward<S>& run) const override {
    auto& trace = run.template own_trace<OwnTrace>();
    auto* const asked = run.template own_state_gradient<RecentTokens<S>>();
    for (Index b = 0; b < run.sequences(); ++b) {
      const auto dy = run.dout().columns(run.streams.first(b), run.streams.steps(b));
      const auto window = window_of(run, b, trace.padded);
      trace.dpadded.setZero(channels, window.cols());
      for (Index j = 0; j < kernel; ++j) {
        auto dpart = trace.dpadded.middleCols(j * dilation, dy.cols());
        add_tap_gradients(run, j, window.middleCols(j * dilation, dy.cols()), dy, dpart);
      }
      if (asked != nullptr) {
        auto recent = asked->recent.middleCols(b * padding(), padding());
        trace.dpadded.rightCols(padding()) += recent;
        recent = trace.dpadded.leftCols(padding());
      }
      run.din().middleCols(run.streams.first(b), dy.cols()) += trace.dpadded.rightCols(dy.cols());
    }
  }

 private:
  Index padding() const { return dilation * (kernel - 1); }
  bool is_depthwise() const { return groups == channels && groups == outputs; }
  template <class M> auto window_of(const Forward<S>& run, Index b, M& padded) const {
    return padded.middleCols(run.streams.first(b) + b * padding(),
                             padding() + run.streams.steps(b));
  }

  // Calls f(first input, inputs, first output, outputs) for every group.
  template <class F> void for_each_group(const F& f) const {
    const Index in = channels / groups, out = outputs / groups;
    for (Index g = 0; g < groups; ++g) f(g * in, in, g * out, out);
  }

  template <class X, class Y>
  void add_tap(const Matrix<S>& weight, Index j, const X& x, Y& y) const {
    if (is_depthwise()) {
      y.noalias() += weight.col(j).asDiagonal() * x;
      return;
    }
    const auto taps = transposed_tap(weight, j, outputs);
    for_each_group([&](Index from, Index in, Index to, Index out) {
      auto part = y.middleRows(to, out);
      fw::detail::add_product(part, taps.middleCols(to, out).transpose(), x.middleRows(from, in),
                              fw::detail::one_block);
    });
  }
  template <class X, class Dy, class Dx>
  void add_tap_gradients(const Backward<S>& run, Index j, const X& x, const Dy& dy, Dx& dx) const {
    if (is_depthwise()) {
      run.dweight().col(j) += dy.cwiseProduct(x).rowwise().sum();
      dx.noalias() += run.weight().col(j).asDiagonal() * dy;
      return;
    }
    const auto taps = transposed_tap(run.weight(), j, outputs);
    auto dtaps = transposed_tap(run.dweight(), j, outputs);
    for_each_group([&](Index from, Index in, Index to, Index out) {
      auto dpart = dtaps.middleCols(to, out);
      auto dinputs = dx.middleRows(from, in);
      fw::detail::add_product(dpart, x.middleRows(from, in), dy.middleRows(to, out).transpose(),
                              fw::detail::one_block);
      fw::detail::add_product(dinputs, taps.middleCols(to, out), dy.middleRows(to, out),
                              fw::detail::one_block);
    });
  }
};

/// A causal convolution over tokens.
///
///     y_t = b + Σ_{j<K} W_j x_{t − δ(K − 1 − j)}
///
/// Zeros precede the first token, the last tap is the current token's. With g groups, group i maps
/// rows i D/g … of x to rows i R/g … of y; g = D = R is depthwise. The weights are those of
/// PyTorch's Conv1d: `name`.weight [R, D/g, K] and `name`.bias [R]. Shapes: x D×T, y R×T; the state
/// holds δ(K − 1) tokens. Cost per token: 2 R K D/g flops. There is no stride, because every value
/// of a network has one column a token; frame_convolution() has one inside of tokens. Throws
/// std::invalid_argument for sizes below 1, too large a reach, or groups that divide D or R with a
/// remainder.
template <class S>
Value<S> convolution(const Value<S>& x, const std::string& name, ConvolutionOptions o) {
  Builder<S>& builder = *x.builder;
  if (o.outputs == 0) o.outputs = x.rows();
  const std::string path = builder.path(name);
  for (const auto& [what, given] : {std::pair{"outputs", o.outputs},
                                    {"groups", o.groups},
                                    {"kernel", o.kernel},
                                    {"dilation", o.dilation}})
    fw::detail::check_size<Dynamic>(path, what, given);
  for (const Index rows : {x.rows(), o.outputs})
    if (rows % o.groups != 0)
      fw::detail::throw_invalid({path, ": ", std::to_string(rows), " rows do not divide into ",
                                 std::to_string(o.groups), " groups"});
  constexpr double longest = 1e9;  // so that no size of a state overflows
  if (double(o.kernel) * double(o.dilation) > longest)
    fw::detail::throw_invalid({path, ": the kernel reaches back too far"});
  const Index inputs = x.rows() / o.groups;
  const Initialiser draw = uniform_initialiser(1 / std::sqrt(double(inputs) * double(o.kernel)));
  const std::size_t weight = builder.weight(name + ".weight", {o.outputs, inputs, o.kernel}, draw);
  const Value<S> y =
      builder.add(GroupedConvolution<S>(x.rows(), o), o.outputs, {x}, {weight}, name);
  return o.bias ? y + parameter(builder, name + ".bias", o.outputs, draw) : y;
}

}  // namespace fw::networks
