#pragma once

#include <fastweights/feature_maps/normalise.hpp>
#include <fastweights/layers/fast_weights.hpp>
#include <fastweights/layers/feed_forward.hpp>
#include <fastweights/layers/language_model.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/training/losses.hpp>
#include <fastweights/training/trainer.hpp>

#include "mpi/parts.hpp"

/// A small language model and its batches, for training over ranks.
namespace mpi_test {

using Model = fw::networks::Network<float>;

inline constexpr int symbols = 7, length = 12;

inline Model drawn_model(std::uint64_t seed) {
  // The optimiser takes what is left of a gradient at the kink of a ReLU as far as any other.
  const fw::networks::FeedForwardOptions smooth{.hidden = 16,
                                                .activation = fw::networks::Activation::silu};
  Model model = fw::networks::language_model<float>(
      {.symbols = symbols, .width = 8, .layers = 2}, [&](const auto& in) {
        const auto x = in + fast_weights(rms_norm(in, "norm1", {}), "mixer",
                                         fw::DeltaRule<float>({.key_size = 4}), {.heads = 2},
                                         fw::L2Normalise());
        return x + feed_forward(rms_norm(x, "norm2", {}), "ffn", smooth);
      });
  fw::Random random(seed);
  fw::initialise(model, random);
  return model;
}

/// Adds the gradient of a sequence of a batch of `batch` that is drawn from its step and place.
inline double run(const Model& model, long long step, Eigen::Index place, int batch,
                  Model& gradient, const fw::GradientReady& ready = {}) {
  fw::Random random(static_cast<std::uint64_t>(1000 * step + place));
  std::vector<int> ids;
  for (int t = 0; t <= length; ++t) ids.push_back(static_cast<int>(random.below(symbols)));
  const fw::Symbols inputs = fw::Symbols(ids).first(length),
                    targets = fw::Symbols(ids).last(length);
  Model::Trace trace;
  Eigen::MatrixXf logits(symbols, length);
  auto state = model.initial_state();
  model.forward(state, inputs, logits, trace, fw::Pass::train);
  const float loss =
      fw::cross_entropy(logits, targets, logits, {.divisor = double(batch) * length});
  model.backward(trace, logits, gradient, ready);
  return double{loss};
}

/// The largest difference of the parameters of two models, on all ranks.
inline double largest_difference(const Model& a, const Model& b) {
  double apart = 0;
  fw::for_each_parameter(
      [&](const std::string&, const auto& x, const auto& y) {
        apart = std::max(apart, double{(x - y).cwiseAbs().maxCoeff()});
      },
      a, b);
  return largest(apart);
}

/// Trains until the optimiser has done `steps`.
template <class Job> void train(fw::Trainer<Model>& trainer, long long steps, const Job& job) {
  trainer.train(
      steps, [](long long) { return 1e-2; }, job, [](const fw::TrainingStep&) {});
}

}  // namespace mpi_test
