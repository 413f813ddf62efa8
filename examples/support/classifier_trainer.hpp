#pragma once

#include <chrono>
#include <limits>
#include <numeric>
#include <optional>

#include "sequence_classifier.hpp"
#include "shuffle.hpp"

/// \file
/// Trains a SequenceClassifier in one thread: Adam, a learning rate that rises for some steps and
/// then falls linearly to 1 %, the parameters of the best validation error kept. The data has
/// size(), targets and gather(which, batch).

struct TrainingPlan {
  long steps = 20000, batch = 128, warmup = 200, evaluations = 40;
  double rate = 1e-3, clip = 5;
  std::uint64_t seed = 1;
};

template <class Data> struct Splits { Data train, validation, test; };

struct CurvePoint {
  long step = 0;
  double loss = 0, validation = 0;  ///< in nats, averaged since the last point; wrong of 1
};

struct TrainingResult {
  fw::Index parameters = 0;
  long steps = 0;                   ///< fewer than planned where it diverged
  double validation = 1, test = 1;  ///< errors, wrong of 1, at the best validation error
  double seconds = 0;               ///< in training steps
  std::vector<CurvePoint> curve;
};

/// All of 0 … size − 1 in random order, again and again.
class Shuffled {
 public:
  Shuffled(std::size_t size, std::uint64_t seed) : all_(size), next_(size), random_(seed) {
    std::iota(all_.begin(), all_.end(), 0);
  }
  int draw() {
    if (next_ == all_.size()) {
      shuffle(all_, random_);
      next_ = 0;
    }
    return all_[next_++];
  }

 private:
  std::vector<int> all_;
  std::size_t next_;
  fw::Random random_;
};

template <class Model, class Data> class ClassifierTrainer {
 public:
  ClassifierTrainer(const Model& model, const Splits<Data>& data, const TrainingPlan& plan)
      : data_(data),
        plan_(plan),
        model_(model),
        grad_(model),
        optimiser_(model, {.weight_decay = 0, .clip = plan.clip}),
        order_(data.train.size(), plan.seed) {}

  /// Calls report() after every step.
  template <class Report> TrainingResult train(Report&& report) {
    const fw::WarmupLinear rate{.peak = plan_.rate,
                                .warmup = std::min(plan_.warmup, plan_.steps / 4),
                                .total = plan_.steps,
                                .floor = plan_.rate / 100};
    const long interval = std::max(1L, plan_.steps / plan_.evaluations);
    TrainingResult result{fw::parameter_count(model_), 0, 1, 1, 0, {}};
    Model best = model_;
    double loss = 0;
    for (long step = 0; step < plan_.steps; ++step) {
      const auto each = timed_step(rate(step), result.seconds);
      if (!each) break;
      loss += *each;
      result.steps = step + 1;
      if (result.steps % interval == 0 || result.steps == plan_.steps) {
        const double validation = error(model_, data_.validation);
        const long since = (step % interval) + 1;
        result.curve.push_back({result.steps, loss / static_cast<double>(since), validation});
        loss = 0;
        if (validation < result.validation) result.validation = validation, best = model_;
      }
      report();
    }
    result.test = error(best, data_.test);
    return result;
  }

  /// How many of 1 are wrong.
  double error(const Model& model, const Data& data) {
    const auto total = static_cast<int>(data.size());
    long wrong = 0;
    for (int first = 0; first < total; first += 128) {
      which_.resize(static_cast<std::size_t>(std::min(128, total - first)));
      std::iota(which_.begin(), which_.end(), first);
      gather(data);
      model.forward(batch_, logits_.cols(), logits_, trace_, fw::Pass::infer);
      for (fw::Index i = 0; i < logits_.cols(); ++i) {
        fw::Index chosen = 0;
        logits_.col(i).maxCoeff(&chosen);
        wrong += chosen != targets_[static_cast<std::size_t>(i)];
      }
    }
    return static_cast<double>(wrong) / static_cast<double>(total);
  }

 private:
  // The sequences which_ with their classes.
  void gather(const Data& data) {
    data.gather(which_, batch_);
    targets_.clear();
    for (const int i : which_) targets_.push_back(data.targets[static_cast<std::size_t>(i)]);
    logits_.resize(10, static_cast<fw::Index>(which_.size()));
  }

  // The loss, or nothing where the gradient is no longer finite.
  std::optional<double> timed_step(double rate, double& seconds) {
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    which_.resize(static_cast<std::size_t>(plan_.batch));
    for (int& i : which_) i = order_.draw();
    gather(data_.train);
    model_.forward(batch_, logits_.cols(), logits_, trace_, fw::Pass::train);
    const double loss = static_cast<double>(fw::cross_entropy(logits_, targets_, logits_));
    fw::set_zero_parameters(grad_);
    model_.backward(batch_, logits_, trace_, grad_);
    if (!std::isfinite(fw::gradient_norm(grad_))) return {};
    optimiser_.step(model_, grad_, rate);
    seconds += std::chrono::duration<double>(Clock::now() - start).count();
    return loss;
  }

  const Splits<Data>& data_;
  TrainingPlan plan_;
  Model model_, grad_;
  fw::AdamW<Model> optimiser_;
  Shuffled order_;
  typename Model::Batch batch_;
  typename Model::Trace trace_;
  std::vector<int> which_, targets_;
  Eigen::MatrixXf logits_;
};
