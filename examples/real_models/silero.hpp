#pragma once

#include <fastweights/networks/operations.hpp>
#include <fastweights/networks/operations/frame_convolution.hpp>

namespace real_models {

using fw::Index;
using fw::networks::Value;

/// √x.
struct SquareRoot {
  template <class S> S value(const S& x) const { return std::sqrt(x); }
  template <class S> S derivative(const S& x) const { return S(0.5) / value(x); }
  template <class A> auto values(const A& x) const { return x.sqrt(); }
  template <class A, class B> auto derivatives(const A&, const B& y) const {
    return typename A::Scalar(0.5) * y.inverse();
  }
};

/// Silero's voice detector for 16 kHz (PyPI silero-vad, MIT): the probability of a voice in each
/// piece of 512 samples. Four spectra of 256 samples, which begin 64 samples before the piece and
/// end with its last 64 mirrored, four convolutions over them, an LSTM. The mirrored samples are in
/// the weights of the last spectrum (script/parts/real_models/convert.py).
template <class S> Value<S> silero(fw::networks::Builder<S>& net) {
  constexpr Index piece = 512, window = 256, hop = 128, bins = window / 2 + 1;
  const Value<S> x = net.input(piece);
  const Value<S> spectra = frame_convolution(
      x, "stft", {.kernel = window, .outputs = 2 * bins, .stride = hop, .history = hop / 2});
  const Value<S> last = linear(split<2>(x, {piece - 192, 192})[1], "last_spectrum", 2 * bins);
  const auto [real, imaginary] =
      split_heads<2>(fw::networks::concatenate<S>({spectra, last}), 4, {bins, bins});
  Value<S> h = fw::networks::apply<SquareRoot>(square(real) + square(imaginary));
  const auto convolve = [&](const char* name, Index channels, Index outputs, Index stride) {
    h = relu(frame_convolution(h, name,
                               {.kernel = 3,
                                .channels = channels,
                                .outputs = outputs,
                                .stride = stride,
                                .padding = 1,
                                .bias = true}));
  };
  convolve("conv1", bins, 128, 1);
  convolve("conv2", 128, 64, 2);
  convolve("conv3", 64, 64, 2);
  convolve("conv4", 64, 128, 1);
  return sigmoid(linear(relu(lstm(h, "lstm", 128)), "head", 1, true));
}

}  // namespace real_models
