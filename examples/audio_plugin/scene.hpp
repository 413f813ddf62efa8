#pragma once

#include <Eigen/Cholesky>
#include <array>
#include <cmath>
#include <fastweights/math/random.hpp>
#include <vector>

#include "audio_plugin/noise_canceller.hpp"

/// Signals of microphones, at 48 kHz.
namespace scene {

using fw::Index;
inline constexpr double rate = 48000, two_pi = 6.283185307179586;

/// A resonance of the vocal tract: a filter with two poles.
class Resonance {
 public:
  float operator()(float x, double hertz) {
    const double radius = std::exp(-two_pi * 40 / rate);  // 80 Hz wide
    const double y = (1 - radius) * double{x} + 2 * radius * std::cos(two_pi * hertz / rate) * y1_ -
                     radius * radius * y2_;
    y2_ = y1_;
    y1_ = y;
    return static_cast<float>(y);
  }

 private:
  double y1_ = 0, y2_ = 0;
};

/// A voice: pulses of 120 Hz with vibrato through the resonances of five vowels, which change at
/// every syllable, with pauses.
inline Eigen::VectorXf voice(Index samples) {
  constexpr std::array<std::array<double, 3>, 5> vowels{{{730, 1090, 2440},
                                                         {530, 1840, 2480},
                                                         {270, 2290, 3010},
                                                         {570, 840, 2410},
                                                         {300, 870, 2240}}};
  std::array<Resonance, 3> resonances;
  Eigen::VectorXf result(samples);
  double phase = 0;
  for (Index t = 0; t < samples; ++t) {
    const double seconds = static_cast<double>(t) / rate, syllables = seconds / 0.2;
    const auto syllable = static_cast<std::size_t>(syllables);
    phase += 120 * (1 + 0.03 * std::sin(two_pi * 5 * seconds)) / rate;
    const bool pulse = phase >= 1;
    if (pulse) phase -= 1;
    const double loudness =
        syllable % 4 == 3 ? 0 : std::sin(two_pi / 2 * (syllables - double(syllable)));
    float y = 0;
    for (std::size_t i = 0; i < 3; ++i)
      y += resonances[i](pulse ? 10.0f : 0.0f, vowels[syllable * 3 % 5][i]);
    result[t] = static_cast<float>(loudness) * y;
  }
  return result;
}

/// A fan: noise with less of the high frequencies, and the hum of its motor.
inline Eigen::VectorXf fan(Index samples, fw::Random& random) {
  Eigen::VectorXf result(samples);
  double rush = 0;
  for (Index t = 0; t < samples; ++t) {
    rush = 0.9 * rush + 0.1 * random.normal();
    double hum = 0;
    for (int k = 1; k <= 8; ++k) hum += std::sin(two_pi * 50 * k * double(t) / rate) / k;
    result[t] = static_cast<float>(rush + 0.1 * hum);
  }
  return result;
}

/// The path from the fan to a microphone: echoes that fade.
inline Eigen::VectorXf path(Index taps, fw::Random& random) {
  Eigen::VectorXf result(taps);
  random.fill(result);
  for (Index i = 0; i < taps; ++i) result[i] *= static_cast<float>(0.3 * std::exp(-double(i) / 40));
  return result;
}

using Room = std::array<Eigen::VectorXf, NoiseCanceller::microphones>;

inline Room room(fw::Random& random) {
  Room result;
  for (auto& to_microphone : result) to_microphone = path(192, random);
  return result;
}

/// The frames of a block callback, and the voice in them.
struct Recording {
  std::vector<float> frames;  // of two microphones and the reference
  Eigen::VectorXf voice;

  Index length() const { return voice.size(); }
};

/// Both microphones hear the voice alike, the fan through the room, and some noise of their own.
inline Recording record(const Room& room, Index samples, fw::Random& random) {
  const Index taps = room[0].size();
  const Eigen::VectorXf noise = fan(samples + taps, random);
  Recording result{std::vector<float>(static_cast<std::size_t>(3 * samples)), voice(samples)};
  auto frames = fw::as_columns(result.frames, NoiseCanceller::inputs);
  for (Index t = 0; t < samples; ++t) {
    for (Index m = 0; m < NoiseCanceller::microphones; ++m)
      frames(m, t) = result.voice[t] +
                     room[static_cast<std::size_t>(m)].reverse().dot(noise.segment(t + 1, taps)) +
                     1e-4f * static_cast<float>(random.normal());
    frames(NoiseCanceller::microphones, t) = noise[t + taps];
  }
  return result;
}

/// The preset of a noise: the filter that predicts the newest sample from those before it, and
/// subtracts the prediction (linear prediction, by its normal equations).
inline Preset preset_of(const Recording& recording) {
  const auto x = fw::as_columns(recording.frames, 3).row(2).transpose().cast<double>().eval();
  constexpr Index before = Preset::taps - 1;
  const Index count = x.size() - before;
  Eigen::MatrixXd past(count, before);
  for (Index i = 0; i < before; ++i) past.col(i) = x.segment(i, count);
  Eigen::MatrixXd products = past.transpose() * past;
  products.diagonal() *= 1 + 1e-6;
  Preset preset;
  preset.whitening.head(before) =
      -products.ldlt().solve(past.transpose() * x.tail(count)).cast<float>();
  return preset;
}

}  // namespace scene
