#include "audio_plugin/noise_canceller.hpp"

#include <fastweights/math/random.hpp>
#include <vector>

#include "support/catch.hpp"

namespace {

using fw::Index;

constexpr Index taps = 32, length = 700;

std::vector<float> random_frames(unsigned seed) {
  std::vector<float> frames(3 * length);
  fw::Random random(seed);
  random.fill(fw::as_columns(frames, 3));
  return frames;
}

std::vector<float> outputs(NoiseCanceller& plugin, const std::vector<float>& frames, Index block) {
  std::vector<float> out(static_cast<std::size_t>(2 * length));
  for (Index t = 0; t < length; t += block) {
    const auto first = static_cast<std::size_t>(t);
    const auto count = static_cast<std::size_t>(std::min(block, length - t));
    plugin.process(std::span(frames).subspan(3 * first, 3 * count),
                   std::span(out).subspan(2 * first, 2 * count));
  }
  return out;
}

Preset preset() {
  Preset result;
  result.whitening[Preset::taps - 2] = -0.5f;
  return result;
}

// The sum over the preset's taps of channel c up to frame t, with zeros before the first.
double filtered(const std::vector<float>& frames, const Preset& preset, Index c, Index t) {
  double sum = 0;
  for (Index i = 0; i < Preset::taps && i <= t; ++i)
    sum += double{preset.whitening[Preset::taps - 1 - i]} *
           double{frames[static_cast<std::size_t>(3 * (t - i) + c)]};
  return sum;
}

// The normalised least-mean-squares algorithm by its definition, for one microphone in double.
std::vector<double> least_mean_squares(const std::vector<float>& frames, const Preset& preset,
                                       double strength, Index microphone) {
  std::vector<double> w(taps, 0), out;
  for (Index t = 0; t < length; ++t) {
    double y = double{frames[static_cast<std::size_t>(3 * t + microphone)]}, power = 1e-6;
    double error = filtered(frames, preset, microphone, t);
    for (Index i = 0; i < taps && i <= t; ++i) {
      const auto tap = static_cast<std::size_t>(i);
      const double x = filtered(frames, preset, 2, t - i);
      y -= w[tap] * double{frames[static_cast<std::size_t>(3 * (t - i) + 2)]};
      error -= w[tap] * x;
      power += x * x;
    }
    for (Index i = 0; i < taps && i <= t; ++i)
      w[static_cast<std::size_t>(i)] +=
          strength * error * filtered(frames, preset, 2, t - i) / power;
    out.push_back(y);
  }
  return out;
}

TEST_CASE("the noise canceller is the normalised least-mean-squares algorithm", "[audio]") {
  const std::vector<float> frames = random_frames(1);
  NoiseCanceller plugin(taps, 0.3f);
  plugin.load(preset());
  const std::vector<float> out = outputs(plugin, frames, length);
  for (Index m = 0; m < 2; ++m) {
    const std::vector<double> expected = least_mean_squares(frames, preset(), double{0.3f}, m);
    double worst = 0;
    for (std::size_t t = 0; t < expected.size(); ++t)
      worst =
          std::max(worst, std::abs(double{out[2 * t + static_cast<std::size_t>(m)]} - expected[t]));
    CHECK(worst < 1e-5);
  }
}

TEST_CASE("the noise canceller gives the same bits with blocks of any length", "[audio]") {
  const std::vector<float> frames = random_frames(2);
  NoiseCanceller whole(taps, 0.1f), blocks(taps, 0.1f);
  CHECK(outputs(blocks, frames, 37) == outputs(whole, frames, length));
}

TEST_CASE("a restored state continues as the saved one did", "[audio]") {
  const std::vector<float> before = random_frames(3), after = random_frames(4);
  const std::vector<float> silence(3 * length);  // after which the windows are those of a new one
  NoiseCanceller plugin(taps, 0.1f), other(taps, 0.1f);
  outputs(plugin, before, 64);
  outputs(plugin, silence, 64);
  const NoiseCanceller::State saved = plugin.snapshot();
  const std::vector<float> expected = outputs(plugin, after, 64);
  other.restore(saved);
  CHECK(outputs(other, after, 64) == expected);
  CHECK(outputs(other, after, 64) != expected);  // the control
}

TEST_CASE("the noise canceller refuses a preset and a state of another size", "[audio]") {
  NoiseCanceller plugin(taps, 0.1f);
  CHECK_THROWS_WITH(plugin.load({Eigen::VectorXf::Zero(3)}),
                    "NoiseCanceller: whitening has 3 taps, the canceller expects 16");
  NoiseCanceller wider(taps + 1, 0.1f);
  CHECK_THROWS_AS(plugin.restore(wider.snapshot()), std::invalid_argument);
}

}  // namespace
