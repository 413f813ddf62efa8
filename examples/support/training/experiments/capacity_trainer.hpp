#pragma once

#include <cmath>
#include <fastweights/math/random.hpp>
#include <fastweights/training/trainer.hpp>
#include <functional>
#include <limits>

#include "models/capacity/recall.hpp"
#include "tasks/capacity_task.hpp"

/// The slow weights of the capacity tasks: k = W_K [onehot(v); e(k)] + b, q = W_Q e(q) + b and
/// β = σ(w [onehot(v); e(k)] + b), with learned embeddings e of the keys. The width of an embedding
/// and the initial weights are the authors'.
template <class S> struct CapacityNet {
  using Matrix = Eigen::MatrixX<S>;
  Matrix embedding;                    // e×S
  Matrix key, key_of_value, query;     // d_key×e, d_key×S, d_key×e
  Matrix strength, strength_of_value;  // 1×e, 1×S
  Eigen::VectorX<S> key_bias, query_bias, strength_bias;
  static constexpr auto names =
      fw::names("embedding", "key", "key_of_value", "query", "strength", "strength_of_value",
                "key_bias", "query_bias", "strength_bias");

  /// `fan`: the initial scale of W_K and W_Q depends on their inputs and outputs (Glorot, Bengio
  /// 2010), as in the authors' softmax model; otherwise on d_key alone.
  CapacityNet(fw::Index symbols, fw::Index d_key, std::uint64_t seed, bool fan = false) {
    const fw::Index width = 22 * symbols / 10;
    embedding.resize(width, symbols);
    key.resize(d_key, width);
    key_of_value.resize(d_key, symbols);
    query.resize(d_key, width);
    strength.resize(1, width);
    strength_of_value.resize(1, symbols);
    key_bias.resize(d_key);
    query_bias.resize(d_key);
    strength_bias.resize(1);
    fw::Random random(seed);
    random.fill(embedding);
    const auto root = [](fw::Index n) { return 1 / std::sqrt(static_cast<double>(n)); };
    const double of_keys = fan ? std::sqrt(6.0) * root(width + symbols + d_key) : root(d_key);
    fw::fill_uniform(random, of_keys, key, key_of_value);
    fw::fill_uniform(random, fan ? std::sqrt(6.0) * root(width + d_key) : root(d_key), query);
    fw::fill_uniform(random, root(width), query_bias);
    fw::fill_uniform(random, root(width + symbols), key_bias, strength, strength_of_value,
                     strength_bias);
  }
};

struct CapacityOptions {
  int symbols = 20;
  bool repeats = false;  // setting 2
  bool fan = false;      // the initial scale of the slow weights
  long d_key = 64, batch = 32, steps = 100000, every = 100, patience = 10, test = 20;
  double rate = 1e-3, enough = 1e-3;
  std::uint64_t seed = 1;
  std::function<void(long, double)> evaluated = [](long, double) {};  // called with step and loss
};

struct CapacityResult {
  double loss = std::numeric_limits<double>::infinity();  // the lowest of all evaluations
  long best = 0, last = 0;  // the step of that evaluation, and the last step
  bool diverged = false;
};

/// Trains the slow weights around a rule on a task, until the loss is low or no longer falls.
/// Batches run one sequence after the other; trainings may run at the same time.
template <class S> class CapacityTrainer {
 public:
  using Net = CapacityNet<S>;

  CapacityTrainer(const CapacityOptions& options, std::unique_ptr<RecallRule<S>> rule)
      : o_(options),
        task_(options.symbols, options.repeats),
        rule_(std::move(rule)),
        model_(Net(options.symbols, options.d_key, options.seed, options.fan)),
        trainer_(model_, {.optimiser = {.weight_decay = 0}, .shards = 1}),
        random_(options.seed * 7919 + static_cast<std::uint64_t>(options.symbols)) {
    for (Eigen::MatrixX<S>* one : {&keys_, &dkeys_}) one->resize(o_.d_key, o_.symbols);
    for (Eigen::RowVectorX<S>* one : {&logits_, &dlogits_}) one->resize(o_.symbols);
    recall_.answers.resize(o_.symbols, 1);
  }

  Net& model() { return model_; }
  Net& gradient() { return trainer_.gradient(); }

  CapacityResult train() {
    CapacityResult result;
    long strikes = 0;
    for (long step = 1; step <= o_.steps; ++step) {
      rule_->redraw(random_);  // for every batch
      std::vector<RecallSequence> batch(static_cast<std::size_t>(o_.batch));
      for (auto& each : batch) each = task_.training(random_);
      loss(batch, /*with_gradient=*/true);
      result.last = step;
      result.diverged = !std::isfinite(fw::gradient_norm(gradient()));
      if (result.diverged) return result;
      trainer_.step(o_.rate);
      if (step % o_.every != 0) continue;
      const double now = evaluate();
      o_.evaluated(step, now);
      strikes = now < result.loss ? 0 : strikes + 1;
      if (now < result.loss) result.loss = now, result.best = step;
      if (now <= o_.enough || strikes > o_.patience) break;
    }
    return result;
  }

  /// The mean loss over all queries of some sequences.
  double evaluate() {
    std::vector<RecallSequence> sequences(static_cast<std::size_t>(o_.test));
    for (auto& each : sequences) each = task_.evaluation(random_);
    return loss(sequences, /*with_gradient=*/false);
  }

  /// The mean of ½‖v* − v̂‖² over all queries; leaves its gradient in gradient().
  double loss(const std::vector<RecallSequence>& sequences, bool with_gradient) {
    if (!with_gradient) return run(sequences, nullptr);
    trainer_.clear_gradient();
    // The whole batch in one shard: its sequences share projections.
    return trainer_.add_gradient(
        [&](fw::Index, Net& gradient) { return run(sequences, &gradient); });
  }

 private:
  double run(const std::vector<RecallSequence>& sequences, Net* gradient) {
    double sum = 0;
    std::size_t queries = 0;
    for (const auto& s : sequences) queries += s.queries.size();
    project();
    dkeys_.setZero();
    dlogits_.setZero();
    for (const auto& s : sequences) {
      set_recall(s);
      rule_->forward(recall_);
      recall_.danswers = recall_.answers;
      for (std::size_t i = 0; i < s.answers.size(); ++i)
        recall_.danswers(s.answers[i], static_cast<fw::Index>(i)) -= 1;
      sum += 0.5 * static_cast<double>(recall_.danswers.squaredNorm());
      if (gradient == nullptr) continue;
      recall_.danswers /= static_cast<S>(queries);
      recall_.clear_gradient();
      rule_->backward(recall_);
      recall_backward(s, *gradient);
    }
    if (gradient != nullptr) project_backward(*gradient);
    return sum / static_cast<double>(queries);
  }

  // The part of keys and strengths that depends on the key alone, once for all sequences of a
  // batch.
  void project() {
    keys_.noalias() = model_.key * model_.embedding;
    keys_.colwise() += model_.key_bias;
    logits_.noalias() = model_.strength * model_.embedding;
    logits_.array() += model_.strength_bias[0];
  }
  void project_backward(Net& gradient) {
    gradient.key.noalias() += dkeys_ * model_.embedding.transpose();
    gradient.strength.noalias() += dlogits_ * model_.embedding.transpose();
    gradient.embedding.noalias() += model_.key.transpose() * dkeys_;
    gradient.embedding.noalias() += model_.strength.transpose() * dlogits_;
    gradient.key_bias += dkeys_.rowwise().sum();
    gradient.strength_bias[0] += dlogits_.sum();
  }

  void set_recall(const RecallSequence& s) {
    const auto length = static_cast<fw::Index>(s.keys.size());
    const auto queries = static_cast<fw::Index>(s.queries.size());
    recall_.values = s.values;
    recall_.keys.resize(o_.d_key, length);
    recall_.beta.resize(length);
    for (fw::Index t = 0; t < length; ++t) {
      const int key = s.keys[static_cast<std::size_t>(t)];
      const int value = s.values[static_cast<std::size_t>(t)];
      recall_.keys.col(t) = keys_.col(key) + model_.key_of_value.col(value);
      recall_.beta[t] = logits_[key] + model_.strength_of_value(0, value);
    }
    recall_.beta = (1 + (-recall_.beta.array()).exp()).inverse();
    queried_.resize(model_.embedding.rows(), queries);
    for (fw::Index i = 0; i < queries; ++i)
      queried_.col(i) = model_.embedding.col(s.queries[static_cast<std::size_t>(i)]);
    recall_.queries.noalias() = model_.query * queried_;
    recall_.queries.colwise() += model_.query_bias;
  }
  void recall_backward(const RecallSequence& s, Net& gradient) {
    for (std::size_t i = 0; i < s.keys.size(); ++i) {
      const auto t = static_cast<fw::Index>(i);
      const S dlogit = recall_.dbeta[t] * recall_.beta[t] * (1 - recall_.beta[t]);
      dkeys_.col(s.keys[i]) += recall_.dkeys.col(t);
      gradient.key_of_value.col(s.values[i]) += recall_.dkeys.col(t);
      dlogits_[s.keys[i]] += dlogit;
      gradient.strength_of_value(0, s.values[i]) += dlogit;
    }
    gradient.query.noalias() += recall_.dqueries * queried_.transpose();
    gradient.query_bias += recall_.dqueries.rowwise().sum();
    queried_.noalias() = model_.query.transpose() * recall_.dqueries;
    for (std::size_t i = 0; i < s.queries.size(); ++i)
      gradient.embedding.col(s.queries[i]) += queried_.col(static_cast<fw::Index>(i));
  }

  CapacityOptions o_;
  RecallTask task_;
  std::unique_ptr<RecallRule<S>> rule_;
  Net model_;
  fw::Trainer<Net> trainer_;
  fw::Random random_;
  Recall<S> recall_;
  Eigen::MatrixX<S> keys_, dkeys_, queried_;
  Eigen::RowVectorX<S> logits_, dlogits_;
};

extern template class CapacityTrainer<float>;
extern template class CapacityTrainer<double>;  // the tests instantiate it
