#pragma once

#include <fastweights/feature_maps/normalise.hpp>
#include <fastweights/layers/memory/fast_weight_layer.hpp>
#include <fastweights/layers/models/pre_norm_block.hpp>
#include <fastweights/layers/norms/rms_norm.hpp>
#include <fastweights/layers/projections/feed_forward.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>

/// Two blocks of 16 channels, each with two heads of a gated delta rule whose W is 8×8.
struct Model {
  using Mixer = fw::FastWeightLayer<fw::GatedDeltaRule<float>, fw::L2Normalise>;
  using Block = fw::PreNormBlock<fw::RmsNorm<float>, Mixer, fw::FeedForward<float>>;
  static constexpr fw::Index channels = 16;

  Block first = block(), second = block();
  static constexpr auto names = fw::names("first", "second");

  /// What one stream needs.
  struct Stream {
    typename Block::State first, second;
    typename Block::Trace first_trace, second_trace;
    Eigen::VectorXf between = Eigen::VectorXf(channels);
  };

  Stream stream() const { return {first.initial_state(), second.initial_state(), {}, {}}; }

  void step(Stream& s, std::span<const float> x, std::span<float> y) const {
    first.forward(s.first, x, s.between, s.first_trace);
    second.forward(s.second, s.between, y, s.second_trace);
  }

 private:
  static Block block() {
    return {Mixer({.d_model = channels, .heads = 2}, fw::GatedDeltaRule<float>({.key_size = 8})),
            fw::FeedForward<float>(channels, 2 * channels)};
  }
};
