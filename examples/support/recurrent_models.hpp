#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "kinds.hpp"
#include "sequence_classifier.hpp"

/// \file
/// The recurrent layers that associative_retrieval and glimpses compare, all of R hidden units.

/// The delta rule with as many units: what is written and read at a token is made of it and the one
/// before by a short convolution, as a memory by itself does not know the order of tokens.
///
///     u_t = ReLU(conv(W x)_t)        y_t = u_t + delta(u)_t
///
/// The memory is R×R, with keys of length 1. Yang et al. 2024, arXiv 2406.06484, section 3.3, has
/// the convolution; there behind the projections of each head.
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
    for (Matrix* room : {&trace.projected, &trace.units}) room->resize(outputs(), x.cols());
    input.forward(none, x, trace.projected, none);
    conv.forward(state.conv, trace.projected, trace.units, trace.conv, pass);
    rectify(trace.units);
    memory.forward(state.memory, trace.units, y, trace.memory, pass);
    y += trace.units;
  }

  void backward(fw::Input<S> x, Trace& trace, fw::Input<S> dy, fw::Output<S> dx,
                DeltaLayer& grad) const {
    fw::Nothing none;
    for (Matrix* room : {&trace.dprojected, &trace.dunits}) room->resize(outputs(), x.cols());
    memory.backward(trace.units, trace.memory, dy, trace.dunits, grad.memory);
    trace.dunits += dy;
    rectify_backward(trace.units, trace.dunits);
    conv.backward(trace.projected, trace.conv, trace.dunits, trace.dprojected, grad.conv);
    input.backward(x, none, trace.dprojected, dx, grad.input);
  }
};

inline const Kinds recurrent_kinds{{"rnn", "plain RNN"},     {"irnn", "IRNN"},
                                   {"lstm", "LSTM"},         {"delta", "delta rule"},
                                   {"fast", "fast weights"}, {"norm", "without fast weights"}};

/// Calls f with the model of that kind around R units, its parameters drawn. The plain RNN is of
/// tanh and starts as PyTorch's, the IRNN is of ReLU and starts from the identity. The fast weights
/// are those of the paper, f = ReLU, λ = 0.95, S = 1, W from 0.05 I, C uniform in ±1/√R; "norm" is
/// the same network with η = 0, which leaves the layer norm. The LSTM starts with forget gates that
/// keep (a bias of 1: Jozefowicz, Zaremba, Sutskever 2015).
template <class Encoder, class F>
auto with_classifier(const std::string& kind, const Encoder& encoder, fw::Index units, double eta,
                     std::uint64_t seed, F&& f) {
  using S = typename Encoder::Scalar;
  constexpr fw::Index hidden = 100, classes = 10;
  fw::Random random(seed);
  const auto with = [&](auto layer, const auto& adjust) {
    SequenceClassifier<Encoder, decltype(layer)> model(encoder, std::move(layer), hidden, classes);
    fw::initialise(model, random);
    adjust(model.recurrent);
    return f(std::move(model));
  };
  const auto as_drawn = [](auto&) {};
  const fw::Index in = encoder.outputs();
  if (kind == "rnn") return with(fw::Rnn<S>(in, units), as_drawn);
  if (kind == "irnn")
    return with(fw::Rnn<S, fw::Relu>(in, units), [](auto& l) { l.start_at_identity(); });
  if (kind == "lstm")
    return with(fw::Lstm<S>(in, units),
                [&](auto& l) { l.bias_ih.segment(units, units).setOnes(); });
  if (kind == "delta") return with(DeltaLayer<S>(in, units), as_drawn);
  if (kind != "fast" && kind != "norm")
    throw std::invalid_argument("there is no model '" + kind +
                                "': expected rnn, irnn, lstm, delta, fast or norm");
  return with(
      fw::FastWeightsRnn<S>({.inputs = in, .hidden = units, .rate = kind == "fast" ? eta : 0.0}),
      as_drawn);
}
