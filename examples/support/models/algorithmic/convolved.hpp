#pragma once

#include <algorithm>
#include <fastweights/fastweights.hpp>
#include <string_view>
#include <utility>

/// A layer behind a short causal convolution. A memory by itself does not know the order of tokens;
/// the convolution joins neighbouring tokens. Yang et al. 2024, arXiv 2406.06484, section 3.3, has
/// one behind every projection. Over 0 tokens it is the layer alone.
template <fw::Layer Mixer> struct Convolved {
  using Scalar = typename Mixer::Scalar;
  using Conv = fw::CausalConv<Scalar>;
  static constexpr std::string_view name = "Convolved";

  Conv conv;
  Mixer mixer;
  static constexpr auto names = fw::names("conv", "mixer");

  struct State {
    typename Conv::State conv;
    typename Mixer::State mixer;
    static constexpr auto names = fw::names("conv", "mixer");
  };
  struct Trace {
    typename Conv::Trace conv;
    typename Mixer::Trace mixer;
    Eigen::MatrixX<Scalar> convolved, dconvolved;
  };

  Convolved(Mixer layer, fw::Index tokens)
      : conv(layer.inputs(), std::max<fw::Index>(tokens, 1), tokens > 0), mixer(std::move(layer)) {
    conv.weight.setZero(inputs(), tokens);
  }

  fw::Index inputs() const { return mixer.inputs(); }
  fw::Index outputs() const { return mixer.outputs(); }
  bool convolves() const { return conv.weight.size() > 0; }
  bool reads_several() const { return mixer.reads_several(); }
  State initial_state(fw::Index sequences = 1) const {
    return {convolves() ? conv.initial_state(sequences) : typename Conv::State(),
            mixer.initial_state(sequences)};
  }

  void forward(State& state, fw::Input<Scalar> x, fw::Output<Scalar> y, Trace& trace,
               fw::Pass pass = fw::Pass::infer) const {
    if (!convolves()) return mixer.forward(state.mixer, x, y, trace.mixer, pass);
    trace.convolved.resize(inputs(), x.cols());
    conv.forward(state.conv, x, trace.convolved, trace.conv, pass);
    mixer.forward(state.mixer, trace.convolved, y, trace.mixer, pass);
  }
  void backward(fw::Input<Scalar> x, Trace& trace, fw::Input<Scalar> dy, fw::Output<Scalar> dx,
                Convolved& grad) const {
    if (!convolves()) return mixer.backward(x, trace.mixer, dy, dx, grad.mixer);
    trace.dconvolved.resize(inputs(), x.cols());
    mixer.backward(trace.convolved, trace.mixer, dy, trace.dconvolved, grad.mixer);
    conv.backward(x, trace.conv, trace.dconvolved, dx, grad.conv);
  }
};
