#pragma once

#include <array>
#include <fastweights/algorithms/step.hpp>
#include <fastweights/core/state.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <span>
#include <stdexcept>
#include <string>

#include "audio_plugin/triple_buffer.hpp"

/// The last n samples, contiguous and the oldest first: every sample is stored twice, n apart.
class Window {
 public:
  explicit Window(fw::Index n) : twice_(Eigen::VectorXf::Zero(2 * n)), n_(n) {}

  void push(float sample) {
    twice_[at_] = twice_[at_ + n_] = sample;
    at_ = (at_ + 1) % n_;
  }
  std::span<const float> samples() const {
    return {twice_.data() + at_, static_cast<std::size_t>(n_)};
  }
  auto vector() const { return twice_.segment(at_, n_); }

 private:
  Eigen::VectorXf twice_;
  fw::Index n_, at_ = 0;
};

/// Learned before, and exchangeable while the canceller runs: a filter that makes the noise
/// white. The last tap belongs to the newest sample.
struct Preset {
  static constexpr fw::Index taps = 16;
  Eigen::VectorXf whitening = Eigen::VectorXf::Unit(taps, taps - 1);  // changes nothing
  static constexpr auto names = fw::names("whitening");
};

/// Removes a noise from two microphones. A third one, the reference x, hears the noise at its
/// source. W is the path from there through the room, which a delta rule learns:
///
///     y = d − W x                                       the output, for the microphones' samples d
///     W = W + β (d' − W x') x'ᵀ,   β = μ / (ε + ‖x'‖²)  x' and d' are filtered by the preset
///
/// x are the last N samples. With this β the rule is the normalised least-mean-squares algorithm.
/// White x' makes it converge faster. Cost: 14 N flops a frame. Widrow et al. 1975, "Adaptive noise
/// cancelling"; Haykin, "Adaptive filter theory", chapter 6.
class NoiseCanceller {
 public:
  using Memory = fw::DeltaRule<float>;
  using State = fw::StateOf<Memory>;
  static constexpr fw::Index microphones = 2, inputs = 3;

  /// Throws std::invalid_argument for fewer taps than the whitening filter has.
  NoiseCanceller(fw::Index taps, float strength)
      : memory_({.key_size = taps, .value_size = microphones}),
        strength_(strength),
        state_(fw::initial_state(memory_)),
        reference_(taps),
        white_reference_(taps),
        presets_(Preset()),
        restored_(state_),
        snapshots_(state_) {
    if (taps < Preset::taps)
      throw std::invalid_argument("NoiseCanceller: taps is " + std::to_string(taps) +
                                  ", expected at least " + std::to_string(Preset::taps));
  }

  /// The block callback, for one thread. Takes frames of the two microphones and the reference, and
  /// gives as many frames of the two outputs. Allocates nothing, and waits for nobody. Throws
  /// std::invalid_argument for buffers of different numbers of frames, before anything is changed.
  void process(std::span<const float> in, std::span<float> out) {
    const auto frames = fw::as_columns(in, inputs);
    auto outputs = fw::as_columns(out, microphones);
    if (outputs.cols() != frames.cols())
      throw std::invalid_argument("NoiseCanceller: out has another number of frames than in");
    presets_.take();
    if (restored_.take()) state_ = restored_.front();
    for (fw::Index t = 0; t < frames.cols(); ++t) process_frame(frames.col(t), outputs.col(t));
    snapshots_.back() = state_;
    snapshots_.publish();
  }

  /// These are for one other thread. The callback follows at its next block.
  void load(const Preset& preset) {
    if (preset.whitening.size() != Preset::taps)
      fw::detail::throw_mismatch("NoiseCanceller", "whitening", preset.whitening.size(), "taps",
                                 Preset::taps, "the canceller");
    presets_.back() = preset;
    presets_.publish();
  }
  void restore(const State& state) {
    fw::check_state(memory_, state);
    restored_.back() = state;
    restored_.publish();
  }
  /// The state after the last block that was processed.
  State snapshot() {
    snapshots_.take();
    return snapshots_.front();
  }

 private:
  template <class Frame, class Output> void process_frame(const Frame& frame, Output&& output) {
    const auto& filter = presets_.front().whitening;
    reference_.push(frame[microphones]);
    white_reference_.push(filter.dot(reference_.vector().tail<Preset::taps>()));
    for (fw::Index m = 0; m < microphones; ++m) {
      Window& heard = heard_[static_cast<std::size_t>(m)];
      heard.push(frame[m]);
      white_[m] = filter.dot(heard.vector());
    }
    fw::read(memory_, state_, {reference_.samples()}, {noise_});
    output = frame.template head<microphones>() - noise_;
    const float beta = strength_ / (1e-6f + white_reference_.vector().squaredNorm());
    fw::write(memory_, state_, {white_reference_.samples(), white_, beta});
  }

  Memory memory_;
  float strength_;
  State state_;
  Window reference_, white_reference_;
  std::array<Window, microphones> heard_{Window(Preset::taps), Window(Preset::taps)};
  Eigen::Vector2f noise_, white_;
  TripleBuffer<Preset> presets_;
  TripleBuffer<State> restored_, snapshots_;
};
