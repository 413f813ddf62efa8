#pragma once

#include <chrono>
#include <fastweights/core/signatures.hpp>
#include <fastweights/math/parallel_for.hpp>
#include <fastweights/training/adamw.hpp>
#include <fastweights/training/schedule.hpp>
#include <functional>
#include <vector>

namespace fw::inline FASTWEIGHTS_ABI {

/// The options of a Trainer.
struct TrainerOptions {
  AdamWOptions optimiser = {};  ///< of AdamW
  Index shards = 4;             ///< parts of a batch, each with a gradient of its own
  bool parallel = true;         ///< shards in parallel, see parallel_for
};

/// Result of a step of training.
struct TrainingStep {
  long long step;        ///< counted from 1
  double loss;           ///< the sum of what the shards returned
  double gradient_norm;  ///< before clipping
  double learning_rate;  ///< the rate of the step
  double seconds;        ///< the time of the step
};

/// Trains a model on batches, in threads. A batch is cut into shards; each runs some sequences
/// forward and backward. The gradients of the shards are added in their order, so the result
/// depends on the number of shards, and not on the number of threads.
///
///     fw::Trainer trainer(model, {.optimiser = {.clip = 1}});
///     trainer.train(1000, fw::WarmupCosine{.peak = 2e-3, .warmup = 50, .total = 1000},
///                   [&](long long step, fw::Index shard, Model& gradient) {
///                     // draws the shard's part of batch `step`, adds to `gradient`, and
///                     // returns its part of the loss
///                   },
///                   [&](const fw::TrainingStep& s) { std::printf("%lld %g\n", s.step, s.loss); });
///
/// The parts of a loss and their gradients are those of the mean over the whole batch: see
/// `divisor` of LossOptions. For a batch that does not fit into memory, call add_gradient several
/// times before step. To resume, load model and optimiser (io/training.hpp); `train` then continues
/// from the optimiser's step. The gradients take `shards` times the memory of the model, the
/// optimiser twice. After an exception of a job or of AdamW the gradient is what it was then: call
/// clear_gradient to continue.
template <Record Model> class Trainer {
 public:
  /// The model must outlive the trainer. Throws std::invalid_argument for an option out of range.
  explicit Trainer(Model& model, const TrainerOptions& o = {})
      : model_(model), optimiser_(model, o.optimiser), parallel_(o.parallel) {
    detail::check_size<Dynamic>("Trainer", "shards", o.shards);
    gradients_.assign(static_cast<std::size_t>(o.shards), zero_gradient(model));
    losses_.resize(gradients_.size());
  }

  /// The model that is trained.
  Model& model() { return model_; }
  /// The optimiser, for example to save it.
  AdamW<Model>& optimiser() { return optimiser_; }
  /// The number of parts of a batch.
  Index shards() const { return static_cast<Index>(gradients_.size()); }

  /// Calls job(shard, its gradient) for every shard, perhaps at the same time. The job adds to the
  /// gradient. Gives the sum of what the jobs return.
  template <class Job> double add_gradient(const Job& job) {
    parallel_for(shards(), parallel_, [&](Index s) {
      const auto i = static_cast<std::size_t>(s);
      losses_[i] = job(s, gradients_[i]);
    });
    double sum = 0;
    for (const double loss : losses_) sum += loss;
    return sum;
  }

  /// The sum over the shards since the last step.
  Model& gradient() {
    for (std::size_t i = 1; i < gradients_.size(); ++i) {
      add_parameters(gradients_[0], gradients_[i]);
      set_zero_parameters(gradients_[i]);
    }
    return gradients_[0];
  }
  /// Sets the gradients of all shards to zero.
  void clear_gradient() {
    for (Model& gradient : gradients_) set_zero_parameters(gradient);
  }

  /// If set, step() calls it with the gradient first, for example to sum it over processes.
  std::function<void(Model&)> before_step = {};

  /// One step of AdamW along the gradient, which is 0 afterwards. Gives its norm before clipping.
  double step(double learning_rate) {
    Model& whole = gradient();
    if (before_step) before_step(whole);
    const double norm = optimiser_.step(model_, whole, learning_rate);
    set_zero_parameters(gradients_[0]);
    return norm;
  }

  /// Steps until the optimiser has done `steps`: rate(step) is the learning rate of a step, counted
  /// from 0, and job(step, shard, gradient) as for add_gradient. Calls after_step(TrainingStep) for
  /// progress, evaluation and checkpoints.
  template <class Rate, class Job, class Callback>
  void train(long long steps, const Rate& rate, const Job& job, const Callback& after_step) {
    using Clock = std::chrono::steady_clock;
    for (long long step = optimiser_.steps; step < steps; ++step) {
      const auto start = Clock::now();
      TrainingStep done{step + 1, 0, 0, rate(step), 0};
      done.loss = add_gradient([&](Index shard, Model& g) { return job(step, shard, g); });
      done.gradient_norm = this->step(done.learning_rate);
      done.seconds = std::chrono::duration<double>(Clock::now() - start).count();
      after_step(done);
    }
  }

 private:
  Model& model_;
  AdamW<Model> optimiser_;
  std::vector<Model> gradients_;
  std::vector<double> losses_;
  bool parallel_;
};

}  // namespace fw
