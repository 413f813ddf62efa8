#pragma once

#include <cmath>
#include <fastweights/algorithms/backward.hpp>
#include <fastweights/core/errors.hpp>
#include <fastweights/feature_maps/softmax.hpp>
#include <fastweights/layers/memory/head_inputs.hpp>
#include <fastweights/memories/recurrent/self_referential_matrix.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace fw::inline FASTWEIGHTS_ABI {

/// The options of a SelfReferentialLayer.
struct SelfReferentialOptions {
  Index d_model;
  Index heads = 1;
  bool bias = false;  ///< of the output
};

/// A multi-head layer of self-referential weight matrices. Its slow weights are the initial
/// matrices, one per head:
///
///     y = W_o [srwm(softmax(x_1)); …; srwm(softmax(x_H))]
///
/// where x_h are the rows of head h. Shapes: x, y d_model×T. A sequence that starts from
/// initial_state() gives the gradient of the initial matrices; a sequence that continues from a
/// later state gives none, because the state is a constant. Cost per token:
/// 2 d_model² + 18 d_model²/heads flops. Throws std::invalid_argument when a size does not fit or
/// d_model is not a multiple of heads.
/// Irie, Schlag, Csordás, Schmidhuber 2022, arXiv 2202.05780, section 3; the initialisation is
/// that of its code.
template <class S> struct SelfReferentialLayer {
  using Scalar = S;
  using Memory = SelfReferentialMatrix<S>;  ///< the memory of a head
  using Matrix = Eigen::Matrix<S, Dynamic, Dynamic>;
  static constexpr std::string_view name = "SelfReferentialLayer";

  std::vector<StateOf<Memory>> initial;  ///< the learned W_0 of every head
  /// W_o.
  Linear<S> output;
  Memory memory;
  static constexpr auto names = fw::names("initial", "output", "memory");

  struct State {
    Index tokens = 0;  ///< tokens so far; forward at 0 starts from the layer's `initial`
    std::vector<StateOf<Memory>> heads;  ///< one per head
    static constexpr auto names = fw::names("tokens", "heads");
  };
  struct Trace {
    Matrix input;                                  ///< x after the softmax
    Matrix out;                                    ///< the heads' outputs
    std::vector<Checkpoints<Memory>> checkpoints;  ///< one per head
    bool from_start = false;         ///< whether the last pass started at the first token
    Index trained = 0;               ///< tokens of the last pass if it was a train pass, else 0
    Matrix dout, dwrite, dread, dx;  ///< backward's buffers
    std::vector<StateOf<Memory>> dstate;
  };

  /// Parameters are zero until initialised or loaded.
  explicit SelfReferentialLayer(const SelfReferentialOptions& o)
      : output(checked(o).d_model, o.d_model, o.bias), memory({.key_size = o.d_model / o.heads}) {
    initial.assign(static_cast<std::size_t>(o.heads), zero_gradient(memory));
  }

  Index inputs() const { return output.inputs(); }
  Index outputs() const { return output.outputs(); }
  State initial_state() const { return {0, initial}; }
  void check_state(const State& state) const {
    detail::check_count(name, {"tokens", state.tokens});
    detail::check_heads(name, state.heads, static_cast<Index>(initial.size()), memory);
  }
  /// Tokens so far.
  Index tokens(const State& state) const { return state.tokens; }

  /// Normal with deviation 1/√d_head and mean 0, or mean −1 in the rows of the write strengths.
  template <class Generator> void initialise(Generator& random) {
    const double deviation = 1 / std::sqrt(static_cast<double>(size()));
    for (auto& head : initial) {
      head.W = head.W.unaryExpr([&](const S&) { return S(deviation * random.normal()); });
      head.W.template bottomRows<4>().array() -= S(1);
    }
    output.initialise(random);
  }

  void forward(State& state, Input<S> x, Output<S> y, Trace& trace, Pass pass = Pass::infer) const {
    detail::check_forward(*this, x, y);
    detail::check_whole(name, pass);
    check_state(state);
    trace.trained = 0;
    trace.from_start = state.tokens == 0;
    if (trace.from_start) state.heads = initial;
    state.tokens += x.cols();
    trace.input = x;
    auto by_head = detail::with_rows(trace.input, size());
    SoftmaxMap().map(by_head, by_head);
    scan_heads(state, trace, pass);
    Nothing none;
    output.forward(none, trace.out, y, none);
    if (pass.trains()) trace.trained = x.cols();
  }

  void backward(Input<S> x, Trace& trace, Input<S> dy, Output<S> dx,
                SelfReferentialLayer& grad) const {
    detail::check_backward(*this, x, trace.trained, dy, dx, grad);
    trace.dout.resize(inputs(), x.cols());
    Nothing none;
    output.backward(trace.out, none, dy, trace.dout, grad.output);
    heads_backward(trace, grad);
    trace.dwrite += trace.dread;
    trace.dx.setZero(inputs(), x.cols());
    const auto input = detail::with_rows(trace.input, size());
    auto dinput = detail::with_rows(trace.dx, size());
    SoftmaxMap().vjp(input, input, detail::with_rows(trace.dwrite, size()), dinput);
    dx = trace.dx;
  }

 private:
  static const SelfReferentialOptions& checked(const SelfReferentialOptions& o) {
    detail::check_size<Dynamic>(name, "d_model", o.d_model);
    detail::check_size<Dynamic>(name, "heads", o.heads);
    if (o.d_model % o.heads != 0)
      detail::throw_invalid({name, ": d_model is ", std::to_string(o.d_model),
                             ", expected a multiple of ", std::to_string(o.heads), " heads"});
    return o;
  }
  Index size() const { return memory.signature().dk; }

  auto head(Matrix& stacked, std::size_t h) const {
    return stacked.middleRows(static_cast<Index>(h) * size(), size());
  }

  void scan_heads(State& state, Trace& trace, Pass pass) const {
    trace.out.resize(trace.input.rows(), trace.input.cols());
    trace.checkpoints.resize(initial.size());
    for (std::size_t h = 0; h < initial.size(); ++h) {
      auto in = head(trace.input, h), out = head(trace.out, h);
      if (pass.trains())
        fw::scan(memory, state.heads[h], {in}, {in}, {out}, trace.checkpoints[h]);
      else
        fw::scan(memory, state.heads[h], {in}, {in}, {out});
    }
  }

  void heads_backward(Trace& trace, SelfReferentialLayer& grad) const {
    trace.dwrite.setZero(trace.input.rows(), trace.input.cols());
    trace.dread.setZero(trace.input.rows(), trace.input.cols());
    // A copy of a state sets the size and reuses the storage.
    trace.dstate.assign(1, trace.checkpoints[0].states[0]);
    auto& dstate = trace.dstate[0];
    for (std::size_t h = 0; h < initial.size(); ++h) {
      set_zero(dstate);
      auto in = head(trace.input, h), dout = head(trace.dout, h), dwrite = head(trace.dwrite, h),
           dread = head(trace.dread, h);
      fw::backward(memory, trace.checkpoints[h], {in}, {in}, {dout}, dstate, {dwrite}, {dread});
      if (trace.from_start) add_parameters(grad.initial[h], dstate);
    }
  }
};

}  // namespace fw
