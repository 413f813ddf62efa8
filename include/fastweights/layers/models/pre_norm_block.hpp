#pragma once

#include <fastweights/layers/layer.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// A residual block with the norms inside its branches (pre-norm).
///
///     h = x + mixer(norm1(x))        y = h + ffn(norm2(h))
///
/// for any layers of the same width. Only the mixer combines tokens. Shapes: x, y d×T, or d×BT for
/// B concatenated sequences. Cost: that of its parts. Throws std::invalid_argument when a size does
/// not fit. Xiong et al. 2020, arXiv 2002.04745, table 1.
template <Layer NormLayer, Layer Mixer, Layer Ffn> struct PreNormBlock {
  using Norm = NormLayer;
  using Scalar = typename Mixer::Scalar;
  using Matrix = Eigen::Matrix<Scalar, Dynamic, Dynamic>;
  static constexpr std::string_view name = "PreNormBlock";

  Norm norm1;   ///< before the mixer
  Mixer mixer;  ///< the layer that mixes tokens
  Norm norm2;   ///< before the feed-forward layer
  Ffn ffn;      ///< the feed-forward layer
  static constexpr auto names = fw::names("norm1", "mixer", "norm2", "ffn");

  struct State {
    typename Norm::State norm1;   ///< of the first norm
    typename Mixer::State mixer;  ///< of the mixer
    typename Norm::State norm2;   ///< of the second norm
    typename Ffn::State ffn;      ///< of the feed-forward layer
    static constexpr auto names = fw::names("norm1", "mixer", "norm2", "ffn");
  };
  struct Trace {
    typename Norm::Trace norm1;
    typename Mixer::Trace mixer;
    typename Norm::Trace norm2;
    typename Ffn::Trace ffn;
    Matrix normed1, residual, normed2;  ///< norm1(x), h, norm2(h)
    Matrix dnormed, dresidual;          ///< backward's buffers
    Index trained = 0;                  ///< tokens of the last pass if it was a train pass, else 0
  };

  /// Throws std::invalid_argument unless both layers keep the same width.
  PreNormBlock(Mixer mixer_layer, Ffn ffn_layer)
      : norm1(mixer_layer.inputs()),
        mixer(std::move(mixer_layer)),
        norm2(mixer.outputs()),
        ffn(std::move(ffn_layer)) {
    const Index d = mixer.inputs();
    if (mixer.outputs() != d)
      detail::throw_mismatch(name, "the mixer's output", mixer.outputs(), "rows", d, "its input");
    if (ffn.inputs() != d)
      detail::throw_mismatch(name, "the ffn's input", ffn.inputs(), "rows", d, "the mixer");
    if (ffn.outputs() != d)
      detail::throw_mismatch(name, "the ffn's output", ffn.outputs(), "rows", d, "the mixer");
  }

  Index inputs() const { return mixer.inputs(); }
  Index outputs() const { return mixer.inputs(); }
  /// The state of `sequences` concatenated sequences.
  State initial_state(Index sequences = 1) const {
    return {fw::initial_state(norm1, sequences), fw::initial_state(mixer, sequences),
            fw::initial_state(norm2, sequences), fw::initial_state(ffn, sequences)};
  }
  void check_state(const State& state) const {
    fw::check_state(norm1, state.norm1);
    fw::check_state(mixer, state.mixer);
    fw::check_state(norm2, state.norm2);
    fw::check_state(ffn, state.ffn);
  }
  /// B of a state.
  Index sequences(const State& state) const requires CountsSequences<Mixer> {
    return detail::sequences_of(mixer, state.mixer);
  }

  void forward(State& state, Input<Scalar> x, Output<Scalar> y, Trace& trace,
               Pass pass = Pass::infer) const {
    detail::check_forward(*this, x, y);
    check_state(state);
    trace.trained = 0;
    for (auto* buffer : {&trace.normed1, &trace.residual, &trace.normed2})
      buffer->resize(inputs(), x.cols());
    norm1.forward(state.norm1, x, trace.normed1, trace.norm1, pass);
    mixer.forward(state.mixer, trace.normed1, trace.residual, trace.mixer, pass);
    trace.residual += x;
    norm2.forward(state.norm2, trace.residual, trace.normed2, trace.norm2, pass);
    ffn.forward(state.ffn, trace.normed2, y, trace.ffn, pass);
    y += trace.residual;
    if (pass.trains()) trace.trained = x.cols();
  }

  void backward(Input<Scalar> x, Trace& trace, Input<Scalar> dy, Output<Scalar> dx,
                PreNormBlock& grad) const {
    detail::check_backward(*this, x, trace.trained, dy, dx, grad);
    for (auto* buffer : {&trace.dnormed, &trace.dresidual}) buffer->resize(inputs(), x.cols());
    ffn.backward(trace.normed2, trace.ffn, dy, trace.dnormed, grad.ffn);
    norm2.backward(trace.residual, trace.norm2, trace.dnormed, trace.dresidual, grad.norm2);
    trace.dresidual += dy;
    mixer.backward(trace.normed1, trace.mixer, trace.dresidual, trace.dnormed, grad.mixer);
    norm1.backward(x, trace.norm1, trace.dnormed, dx, grad.norm1);
    dx += trace.dresidual;
  }
};

}  // namespace fw
