#pragma once

#include <algorithm>
#include <fastweights/fastweights.hpp>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "tasks/text.hpp"
#include "training/threads.hpp"

/// Trains a language model on windows of a text. The batch is cut into shards that may run at the
/// same time, each with gradients of its own, summed up in order: the result is the same for any
/// number of threads.
template <class Model> class Trainer {
 public:
  /// Throws std::invalid_argument when a part of the text is shorter than a window.
  Trainer(const Model& model, const Text& text, long batch, long length, int shards = 4)
      : batch_(batch), length_(length), shards_(static_cast<std::size_t>(shards), Shard(model)) {
    const std::size_t shortest = std::min(text.training().size(), text.validation().size());
    if (shortest <= static_cast<std::size_t>(length))
      throw std::invalid_argument("the text is too short: " + std::to_string(shortest) +
                                  " characters to train or validate on, more than " +
                                  std::to_string(length) + " expected");
  }

  /// The gradient of the mean loss over windows of the training text drawn by `random`; stays here
  /// until the next call. Returns the loss in nats.
  double gradient(const Model& model, const Text& text, fw::Random& random) {
    std::vector<std::size_t> starts;
    const auto room = text.training().size() - static_cast<std::size_t>(length_);
    for (long i = 0; i < batch_; ++i) starts.push_back(random.below(room));
    run_jobs(shards_.size(), threads_or_all(), [&](std::size_t s) {
      Shard& shard = shards_[s];
      fw::set_zero_parameters(shard.gradient);
      shard.loss = 0;
      for (std::size_t i = s; i < starts.size(); i += shards_.size())
        shard.loss += train_window(model, shard, text.training().subspan(starts[i]));
    });
    for (std::size_t s = 1; s < shards_.size(); ++s) {
      fw::add_parameters(shards_[0].gradient, shards_[s].gradient);
      shards_[0].loss += shards_[s].loss;
    }
    return shards_[0].loss / static_cast<double>(batch_);
  }

  const Model& gradient() const { return shards_[0].gradient; }

  /// The mean loss in nats over windows of `symbols`, one behind the other, at most `windows` of
  /// them evenly spread.
  double loss(const Model& model, std::span<const int> symbols,
              std::size_t windows = std::numeric_limits<std::size_t>::max()) {
    const auto length = static_cast<std::size_t>(length_);
    const std::size_t all = (symbols.size() - 1) / length;
    const std::size_t used = std::min(windows, all);
    std::vector<double> losses(used);
    run_jobs(shards_.size(), threads_or_all(), [&](std::size_t s) {
      for (std::size_t i = s; i < used; i += shards_.size())
        losses[i] = run_window(model, shards_[s], symbols.subspan(i * all / used * length),
                               fw::Pass::infer);
    });
    double sum = 0;
    for (const double each : losses) sum += each;
    return sum / static_cast<double>(used);
  }

 private:
  struct Shard {
    explicit Shard(const Model& model) : gradient(model) {}
    Model gradient;
    typename Model::Trace trace;
    Eigen::MatrixXf logits;
    double loss = 0;
  };

  // Leaves the gradient of the window's loss in shard.logits.
  double run_window(const Model& model, Shard& shard, std::span<const int> from, fw::Pass pass) {
    const auto length = static_cast<std::size_t>(length_);
    shard.logits.resize(model.symbols(), length_);
    auto state = model.initial_state();
    model.forward(state, from.first(length), shard.logits, shard.trace, pass);
    return fw::cross_entropy(shard.logits, from.subspan(1, length), shard.logits);
  }

  double train_window(const Model& model, Shard& shard, std::span<const int> from) {
    const double loss = run_window(model, shard, from, fw::Pass::train);
    shard.logits /= static_cast<float>(batch_);
    model.backward(from.first(static_cast<std::size_t>(length_)), shard.trace, shard.logits,
                   shard.gradient);
    return loss;
  }

  long batch_, length_;
  std::vector<Shard> shards_;
};
