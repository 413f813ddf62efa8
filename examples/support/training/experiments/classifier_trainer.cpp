#include "training/experiments/classifier_trainer.hpp"

#include <chrono>
#include <cmath>
#include <fastweights/training/schedule.hpp>
#include <fastweights/training/trainer.hpp>
#include <numeric>
#include <optional>

#include "tasks/shuffle.hpp"
#include "training/any_model.hpp"

namespace {

// All of 0 … size − 1 in random order, again and again.
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

class ClassifierTrainer {
 public:
  ClassifierTrainer(ClassifierModel& model, const Splits<ClassifiedSequences>& data,
                    const TrainingPlan& plan)
      : data_(data),
        plan_(plan),
        model_(model),
        record_(model),
        trainer_(record_, {.optimiser = {.weight_decay = 0, .clip = plan.clip}, .shards = 1}),
        order_(data.train.size(), plan.seed) {}

  TrainingResult train(const std::function<void()>& report) {
    const fw::WarmupLinear rate{.peak = plan_.rate,
                                .warmup = std::min(plan_.warmup, plan_.steps / 4),
                                .total = plan_.steps,
                                .floor = plan_.rate / 100};
    const long interval = std::max(1L, plan_.steps / plan_.evaluations);
    TrainingResult result{.parameters = parameter_count(model_), .curve = {}};
    auto best = model_.clone();
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
        if (validation < result.validation) result.validation = validation, best = model_.clone();
      }
      report();
    }
    result.test = error(static_cast<const ClassifierModel&>(*best), data_.test);
    return result;
  }

 private:
  // The share of wrong classes.
  double error(const ClassifierModel& model, const ClassifiedSequences& data) {
    const auto total = static_cast<int>(data.size());
    long wrong = 0;
    for (int first = 0; first < total; first += 128) {
      chosen_.resize(static_cast<std::size_t>(std::min(128, total - first)));
      std::iota(chosen_.begin(), chosen_.end(), first);
      gather(data);
      const Score score = model.run(batch_, targets_, buffers_);
      wrong += score.answers - score.right;
    }
    return static_cast<double>(wrong) / static_cast<double>(total);
  }

  // Copies the sequences chosen_ with their classes.
  void gather(const ClassifiedSequences& data) {
    data.gather(chosen_, batch_);
    targets_.clear();
    for (const int i : chosen_) targets_.push_back(data.targets[static_cast<std::size_t>(i)]);
  }

  // The loss, or nothing where the gradient is no longer finite.
  std::optional<double> timed_step(double rate, double& seconds) {
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    chosen_.resize(static_cast<std::size_t>(plan_.batch));
    for (int& i : chosen_) i = order_.draw();
    gather(data_.train);
    const double loss = trainer_.add_gradient([&](fw::Index, AnyModel<float>& gradient) {
      return model_.run(batch_, targets_, buffers_, &gradient.model()).loss;
    });
    if (!std::isfinite(fw::gradient_norm(trainer_.gradient()))) return {};
    trainer_.step(rate);
    seconds += std::chrono::duration<double>(Clock::now() - start).count();
    return loss;
  }

  const Splits<ClassifiedSequences>& data_;
  TrainingPlan plan_;
  ClassifierModel& model_;
  AnyModel<float> record_;                // refers to the model
  fw::Trainer<AnyModel<float>> trainer_;  // of one shard: a batch goes through a product as a whole
  std::any buffers_;
  Shuffled order_;
  SequenceBatch batch_;
  std::vector<int> chosen_, targets_;
};

}  // namespace

TrainingResult train_classifier(ClassifierModel& model, const Splits<ClassifiedSequences>& data,
                                const TrainingPlan& plan, const std::function<void()>& report) {
  return ClassifierTrainer(model, data, plan).train(report);
}
