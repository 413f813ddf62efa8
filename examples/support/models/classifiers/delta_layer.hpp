#pragma once

#include <fastweights/layers/memory/fast_weight_layer.hpp>
#include <fastweights/layers/projections/causal_conv.hpp>
#include <fastweights/layers/projections/linear.hpp>
#include <string_view>

#include "models/classifiers/sequence_classifier.hpp"

/// A memory with the delta rule, with as many units as the recurrent layers. A short convolution
/// over a token and the one before makes the inputs of the memory, which does not know the order of
/// tokens by itself.
///
///     u_t = ReLU(conv(W x)_t)        y_t = u_t + delta(u)_t
///
/// The memory is R×R, with keys of length 1. Yang et al. 2024, arXiv 2406.06484, section 3.3, has
/// the convolution behind the projections of each head.
template <class S> struct DeltaLayer {
  using Scalar = S;
  using Matrix = Eigen::MatrixX<S>;
  using Memory = fw::FastWeightLayer<fw::DeltaRule<S>, fw::L2Normalise>;
  static constexpr std::string_view name = "DeltaLayer";

  fw::Linear<S> input;
  fw::CausalConv<S> conv;
  Memory memory;
  static constexpr auto names = fw::names("input", "conv", "memory");

  struct State {
    typename fw::CausalConv<S>::State conv;
    typename Memory::State memory;
    static constexpr auto names = fw::names("conv", "memory");
  };
  struct Trace {
    typename fw::CausalConv<S>::Trace conv;
    typename Memory::Trace memory;
    Matrix projected, units, dprojected, dunits;
  };

  DeltaLayer(fw::Index in, fw::Index units)
      : input(in, units),
        conv(units, 2),
        memory({.d_model = units}, fw::DeltaRule<S>({.key_size = units})) {}

  fw::Index inputs() const { return input.inputs(); }
  fw::Index outputs() const { return memory.outputs(); }
  State initial_state(fw::Index sequences = 1) const {
    return {conv.initial_state(sequences), memory.initial_state(sequences)};
  }

  void forward(State& state, fw::Input<S> x, fw::Output<S> y, Trace& trace,
               fw::Pass pass = fw::Pass::infer) const {
    fw::Nothing none;
    for (Matrix* buffer : {&trace.projected, &trace.units}) buffer->resize(outputs(), x.cols());
    input.forward(none, x, trace.projected, none);
    conv.forward(state.conv, trace.projected, trace.units, trace.conv, pass);
    rectify(trace.units);
    memory.forward(state.memory, trace.units, y, trace.memory, pass);
    y += trace.units;
  }

  void backward(fw::Input<S> x, Trace& trace, fw::Input<S> dy, fw::Output<S> dx,
                DeltaLayer& grad) const {
    fw::Nothing none;
    for (Matrix* buffer : {&trace.dprojected, &trace.dunits}) buffer->resize(outputs(), x.cols());
    memory.backward(trace.units, trace.memory, dy, trace.dunits, grad.memory);
    trace.dunits += dy;
    rectify_backward(trace.units, trace.dunits);
    conv.backward(trace.projected, trace.conv, trace.dunits, trace.dprojected, grad.conv);
    input.backward(x, none, trace.dprojected, dx, grad.input);
  }
};
